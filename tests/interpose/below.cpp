// A program that stays below the minimum has no segment and no reservation. One larger block
// creates both.

#include <string>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

/// Returns the size in bytes of the largest mapping without access, which is the reservation.
std::size_t reserved() {
    std::ifstream maps("/proc/self/maps");
    std::size_t largest = 0;
    for (std::string line; std::getline(maps, line);) {
        std::size_t begin = 0;
        std::size_t end = 0;
        char rights[5] = {};
        if (std::sscanf(line.c_str(), "%zx-%zx %4s", &begin, &end, rights) != 3) continue;
        if (std::strcmp(rights, "---p") == 0 && end - begin > largest) largest = end - begin;
    }
    return largest;
}

// The address space lends the pool 64 MiB at first, of which a few are committed.
constexpr std::size_t some = std::size_t{32} << 20;

}  // namespace

int main() {
    expect_interposed();
    {
        std::vector<std::string> many;
        many.reserve(1000);
        for (int i = 0; i < 1000; ++i) many.emplace_back(60'000, 'x');
    }
    expect(!maps_have("memfd:tensorpool"), "no segment");
    expect(reserved() < some, "nothing reserved", reserved());
    void* const p = hidden(std::malloc(65'536));
    expect(maps_have("memfd:tensorpool"), "a segment");
    expect(reserved() > some, "a reservation", reserved());
    std::free(p);
    return failures == 0 ? 0 : 1;
}
