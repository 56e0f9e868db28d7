// A program that allocates 512 MiB and prints its own heap profile, as other processes see it: the
// mean distance between samples, and whether there is a site, with its stack or without. With an
// argument, it sets that distance first.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>

int main(int count, char** arguments) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    if (count > 1) {
        tensorpool::set_profile_interval(std::strtoull(arguments[1], nullptr, 10));
    }
    // Pools with checks, the default for debugging, take no samples.
    tensorpool::MemoryPool pool({.checks = tensorpool::Checks::off});
    for (int i = 0; i != 512; ++i) pool.deallocate(pool.allocate(bytes), bytes);
    const tensorpool::HeapProfile profile =
        tensorpool::StatisticsReader::attach(static_cast<std::uint64_t>(getpid())).heap_profile();
    std::printf("%llu %s\n", static_cast<unsigned long long>(profile.interval),
                profile.sites.empty()                 ? "none"
                : profile.sites.front().stack.empty() ? "some without stacks"
                                                      : "some");
}
