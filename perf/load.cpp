/// Question: how long does it take to load a model by mapping its file, compared with reading it?

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <tensorpool/mapped_file.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "support/barrier.hpp"
#include "support/child.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/resident.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::MappedFile;
using tensorpool::Prefetch;

constexpr std::size_t MiB = std::size_t{1} << 20;

// The file ----------------------------------------------------------------------------------------

/// A file of `mib` pieces of 1 MiB, which stand for tensors. The file has no name, so that the
/// system removes it however this process ends.
class ModelFile {
public:
    explicit ModelFile(std::size_t mib)
        : file_(open(std::filesystem::temp_directory_path().c_str(), O_TMPFILE | O_RDWR, 0600)),
          bytes_(mib * MiB) {
        if (file_ < 0 || !write(mib)) {
            std::perror("load_perf: a file in the temporary folder");
            std::exit(1);
        }
    }
    ~ModelFile() { close(file_); }
    ModelFile(const ModelFile&) = delete;
    ModelFile& operator=(const ModelFile&) = delete;

    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }
    std::size_t bytes() const { return bytes_; }

    /// Drops the file from the page cache. Returns false if a page of it is still cached.
    bool make_cold() const {
        const MappedFile mapped = MappedFile::open(path());
        mapped.drop_from_cache();
        return mapped.resident_bytes() == 0;
    }
    /// Reads the file into the page cache. Returns false if it is not cached as a whole.
    bool make_warm() const {
        const MappedFile mapped = MappedFile::open(path());
        mapped.prefetch(Prefetch::now);
        return mapped.resident_bytes() >= bytes_;
    }

private:
    /// Writes the pieces to the disk. Returns false on failure, with the reason in errno.
    bool write(std::size_t mib) const {
        std::vector<std::uint64_t> piece(MiB / 8);
        std::uint64_t state = 1;
        for (std::size_t i = 0; i < mib; ++i) {
            // Knuth's linear congruential generator (MMIX) makes bytes that cannot be compressed.
            for (std::uint64_t& word : piece) {
                word = state = state * 6364136223846793005U + 1442695040888963407U;
            }
            if (::write(file_, piece.data(), MiB) != static_cast<ssize_t>(MiB)) return false;
        }
        return fsync(file_) == 0;
    }

    int file_;
    std::size_t bytes_;
};

// Ways to load it ---------------------------------------------------------------------------------

/// Which pieces of the file are used: all, or one of ten.
struct Use {
    std::size_t bytes;  // of the file
    std::size_t every;

    template <class Function>
    void for_each(const Function& function) const {
        for (std::size_t at = 0; at < bytes; at += every * MiB) function(at);
    }
};

std::uint64_t sum_piece(const std::byte* piece) {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < MiB; at += sizeof sum) {
        std::uint64_t word = 0;
        std::memcpy(&word, piece + at, sizeof word);
        sum += word;
    }
    return sum;
}

/// Reads every byte of the used pieces.
std::uint64_t sum_of(const std::byte* file, const Use& use) {
    std::uint64_t sum = 0;
    use.for_each([&](std::size_t at) { sum += sum_piece(file + at); });
    return sum;
}

/// An open file. The process aborts if the file cannot be opened or read.
class Opened {
public:
    explicit Opened(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (file_ < 0) std::abort();
    }
    ~Opened() { close(file_); }
    int number() const { return file_; }
    void read(std::size_t offset, std::byte* to, std::size_t bytes) const {
        while (bytes > 0) {
            const ssize_t got = pread(file_, to, bytes, static_cast<off_t>(offset));
            if (got <= 0) std::abort();
            offset += static_cast<std::size_t>(got);
            to += got;
            bytes -= static_cast<std::size_t>(got);
        }
    }

private:
    int file_;
};

struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
};
std::unique_ptr<std::byte, Free> take_from_malloc(std::size_t bytes) {
    std::unique_ptr<std::byte, Free> memory(static_cast<std::byte*>(std::malloc(bytes)));
    if (memory == nullptr) std::abort();
    return memory;
}

// Each of these functions returns the sum of the used pieces.

std::uint64_t map(const std::string& path, const Use& use) {
    return sum_of(MappedFile::open(path).bytes().data(), use);
}

/// Requests read-ahead of all used pieces before the first byte is read.
std::uint64_t map_ahead(const std::string& path, const Use& use) {
    const MappedFile mapped = MappedFile::open(path);
    use.for_each([&](std::size_t at) { mapped.prefetch(Prefetch::ahead, {at, MiB}); });
    return sum_of(mapped.bytes().data(), use);
}

std::uint64_t map_now(const std::string& path, const Use& use) {
    const MappedFile mapped = MappedFile::open(path);
    if (use.every == 1) mapped.prefetch(Prefetch::now);
    if (use.every > 1) {
        use.for_each([&](std::size_t at) { mapped.prefetch(Prefetch::now, {at, MiB}); });
    }
    return sum_of(mapped.bytes().data(), use);
}

/// Unmaps each piece after its use, as a program does that copies weights to a device.
std::uint64_t map_and_unmap(const std::string& path, const Use& use) {
    MappedFile mapped = MappedFile::open(path);
    std::uint64_t sum = 0;
    use.for_each([&](std::size_t at) {
        mapped.prefetch(Prefetch::now, {at, MiB});
        sum += sum_piece(mapped.bytes().data() + at);
        mapped.unmap({at, MiB});
    });
    return sum;
}

std::uint64_t map_populated(const std::string& path, const Use& use) {
    const Opened file(path);
    void* const memory =
        mmap(nullptr, use.bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file.number(), 0);
    if (memory == MAP_FAILED) std::abort();
    return sum_of(static_cast<const std::byte*>(memory), use);
}

std::uint64_t read_all_into_malloc(const std::string& path, const Use& use) {
    const auto memory = take_from_malloc(use.bytes);
    Opened(path).read(0, memory.get(), use.bytes);
    return sum_of(memory.get(), use);
}

std::uint64_t read_all_into_pool(const std::string& path, const Use& use) {
    tensorpool::PooledAllocation memory(use.bytes);
    std::byte* const bytes = memory.as<std::byte>().data();
    Opened(path).read(0, bytes, use.bytes);
    return sum_of(bytes, use);
}

std::uint64_t read_used_into_malloc(const std::string& path, const Use& use) {
    const auto memory = take_from_malloc(use.bytes);
    const Opened file(path);
    use.for_each([&](std::size_t at) { file.read(at, memory.get() + at, MiB); });
    return sum_of(memory.get(), use);
}

struct Subject {
    const char* name;
    std::uint64_t (*load)(const std::string& path, const Use& use);
};
constexpr Subject subjects[] = {
    {"mapped", map},
    {"mapped, prefetched ahead", map_ahead},
    {"mapped, prefetched at once", map_now},
    {"mapped, at once, unmapped after use", map_and_unmap},
    {"mmap with MAP_POPULATE, all of it", map_populated},
    {"read into malloc, all of it", read_all_into_malloc},
    {"read into the pool, all of it", read_all_into_pool},
    {"read into malloc, what is used", read_used_into_malloc},
};

// Measurement -------------------------------------------------------------------------------------

struct Cost {
    double milliseconds = 0;
    double peak_mib = 0;
    std::uint64_t sum = 0;
};

std::optional<Cost> measure(const Subject& subject, const std::string& path, const Use& use) {
    return perf::in_a_child([&] {
        Cost cost;
        cost.milliseconds = 1e3 * perf::seconds_of([&] { cost.sum = subject.load(path, use); });
        cost.peak_mib = static_cast<double>(perf::peak_resident_bytes()) / MiB;
        return cost;
    });
}

/// Measures the sum alone, over bytes that were read before.
std::optional<Cost> measure_floor(const std::string& path, const Use& use) {
    return perf::in_a_child([&] {
        const auto memory = take_from_malloc(use.bytes);
        Opened(path).read(0, memory.get(), use.bytes);
        Cost cost;
        cost.milliseconds = 1e3 * perf::seconds_of([&] { cost.sum = sum_of(memory.get(), use); });
        return cost;
    });
}

/// The values of one subject, one for each round.
struct Row {
    std::vector<double> cold_ms, warm_ms, of_floor;
    double peak_mib = 0;
};

class Rounds {
public:
    Rounds(const ModelFile& file, std::size_t every) : file_(file), use_{file.bytes(), every} {}

    /// Runs each subject once with the file on the disk and once with it in the cache. The order is
    /// random, because the free memory that the subject before leaves can make a factor of three.
    /// Throws std::runtime_error if a subject fails, or if its sum differs from the others'.
    void run_one() {
        for (const std::size_t turn : shuffled()) {
            if (!file_.make_cold()) throw std::runtime_error("the file cannot be made cold");
            rows[turn].cold_ms.push_back(run(turn).milliseconds);
        }
        floor_ms.push_back(check(measure_floor(file_.path(), use_)).milliseconds);
        for (const std::size_t turn : shuffled()) {
            if (!file_.make_warm()) throw std::runtime_error("the file does not stay in the cache");
            const Cost cost = run(turn);
            rows[turn].warm_ms.push_back(cost.milliseconds);
            rows[turn].of_floor.push_back(cost.milliseconds / floor_ms.back());
            rows[turn].peak_mib = std::max(rows[turn].peak_mib, cost.peak_mib);
        }
    }

    Row rows[std::size(subjects)];
    std::vector<double> floor_ms;

private:
    std::vector<std::size_t> shuffled() {
        std::vector<std::size_t> turns(std::size(subjects));
        std::iota(turns.begin(), turns.end(), std::size_t{0});
        std::shuffle(turns.begin(), turns.end(), random_);
        return turns;
    }
    Cost run(std::size_t turn) { return check(measure(subjects[turn], file_.path(), use_)); }
    Cost check(const std::optional<Cost>& cost) {
        if (!cost) throw std::runtime_error("a process failed");
        if (!sum_) sum_ = cost->sum;
        if (cost->sum != *sum_) throw std::runtime_error("the sums of two subjects differ");
        return *cost;
    }

    const ModelFile& file_;
    Use use_;
    std::mt19937 random_{1};
    std::optional<std::uint64_t> sum_;
};

std::string with_range(const std::vector<double>& values) {
    return text(perf::median(values), 0) + " (" + text(perf::quantile(values, 0), 0) + " to " +
           text(perf::quantile(values, 1), 0) + ")";
}

void measure_all(const ModelFile& file, std::size_t every, const perf::Options& options,
                 perf::Report& report) {
    const std::string title = "load: " + std::to_string(file.bytes() / MiB) + " MiB, " +
                              (every == 1 ? "all of it" : "each tenth MiB") + " used";
    Rounds rounds(file, every);
    try {
        for (int round = 0; round < options.rounds; ++round) rounds.run_one();
    } catch (const std::exception& error) {
        return report.print_unmeasured(title, error.what());
    }
    std::vector<perf::Cells> table = {
        {"from opening to the last byte used", "cold, ms", "warm, ms", "warm, of the floor",
         "peak resident, MiB"},
        {"in memory already: the floor", "–", with_range(rounds.floor_ms), "1.00", "–"}};
    for (std::size_t i = 0; i < std::size(subjects); ++i) {
        const Row& row = rounds.rows[i];
        table.push_back({subjects[i].name, with_range(row.cold_ms), with_range(row.warm_ms),
                         text(perf::median(row.of_floor)), text(row.peak_mib, 0)});
    }
    report.print(title, table);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 5);
    perf::Report report(options);
    perf::stay_on_core(0);
    const ModelFile file(options.quick ? 16 : 1024);
    measure_all(file, 1, options, report);
    measure_all(file, 10, options, report);
    return report.status();
}
