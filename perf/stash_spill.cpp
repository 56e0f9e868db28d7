/// Question: how long does it take to restore a spilled tensor, compared with reading the same
/// bytes from a file that is not in the page cache?

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/stash.hpp>

#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::PooledAllocation;

constexpr std::size_t MiB = std::size_t{1} << 20;

/// A file of the same content as the tensor, or of as many bytes as its encoding.
class PlainFile {
public:
    PlainFile(const char* folder, std::span<const std::byte> bytes)
        : file_(open(folder, O_TMPFILE | O_RDWR, 0600)), bytes_(bytes.size()) {
        if (file_ < 0 || !write_all(bytes) || fsync(file_) != 0) {
            std::perror("stash_spill_perf: a file in the folder");
            std::exit(1);
        }
    }
    ~PlainFile() { close(file_); }
    PlainFile(const PlainFile&) = delete;
    PlainFile& operator=(const PlainFile&) = delete;

    /// Returns the seconds that reading takes, in pieces of 1 MiB, from the disk.
    double cold_read_s(std::span<std::byte> to) const {
        (void)posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
        return perf::seconds_of([&] {
            for (std::size_t at = 0; at < bytes_; at += MiB) {
                const std::size_t bytes = std::min(MiB, bytes_ - at);
                if (pread(file_, &to[at], bytes, static_cast<off_t>(at)) !=
                    static_cast<ssize_t>(bytes))
                    std::abort();
            }
        });
    }

private:
    bool write_all(std::span<const std::byte> bytes) const {
        for (std::size_t at = 0; at < bytes.size(); at += MiB) {
            const std::size_t count = std::min(MiB, bytes.size() - at);
            if (write(file_, &bytes[at], count) != static_cast<ssize_t>(count)) return false;
        }
        return true;
    }

    int file_;
    std::size_t bytes_;
};

/// Fills memory with numbers as trained weights are, or with random bytes.
void fill(std::span<float> values, bool is_random) {
    std::mt19937 generator(1);
    std::normal_distribution<float> weight(0, 0.02F);
    for (float& value : values) {
        const auto bits = static_cast<std::uint32_t>(generator());
        value = weight(generator);
        if (is_random) std::memcpy(&value, &bits, sizeof value);
    }
}

void measure(const perf::Options& options, perf::Report& report, bool is_random) {
    const char* const folder = ".";
    const std::size_t bytes = options.quick ? 4 * MiB : 256 * MiB;
    tensorpool::MemoryPool pool({.name = "tensors"});
    PooledAllocation block(pool, bytes);
    fill(block.as<float>(), is_random);
    const PlainFile plain(folder, block.as<const std::byte>());
    const tensorpool::StashOptions stash_options = {.type = tensorpool::DataType::of<float>(),
                                                    .method = tensorpool::StashMethod::spill,
                                                    .folder = folder};
    std::vector<std::byte> memory(bytes);
    double ratio = 1;
    const auto stash_s = [&] {
        tensorpool::Stash kept;
        const double seconds =
            perf::seconds_of([&] { kept = tensorpool::stash(std::move(block), stash_options); });
        block = kept.restore();
        return seconds;
    };
    const auto restore_s = [&] {
        tensorpool::Stash kept = tensorpool::stash(std::move(block), stash_options);
        ratio = static_cast<double>(kept.bytes_spilled()) / static_cast<double>(bytes);
        const double seconds = perf::seconds_of([&] { kept.restore_to(memory); });
        block = PooledAllocation(pool, bytes);
        std::memcpy(block.get(), memory.data(), bytes);
        return seconds;
    };
    const perf::Turns turns(options.rounds,
                            {[&] { return plain.cold_read_s(memory); }, restore_s, stash_s});
    const auto rate = [&](std::size_t subject) {
        return text(static_cast<double>(bytes) / 1e9 / turns.median(subject));
    };
    // 0.8 of the rate is 1.25 of the time.
    report.print(std::string(is_random ? "random bytes" : "weights in FP32") + ", " +
                     std::to_string(bytes / MiB) + " MiB",
                 {{"GB/s of the tensor", "rate", "time of reading", "ratio"},
                  {"`pread`, cold", rate(0), "", ""},
                  {"restored", rate(1), report.judge(turns.ratio(1, 0), 1.25), text(ratio, 4)},
                  {"stashed", rate(2), text(turns.ratio(2, 0)), ""}});
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 9);
    perf::Report report(options);
    measure(options, report, false);
    measure(options, report, true);
    return report.status();
}
