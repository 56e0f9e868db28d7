/// Question: how long does a thread wait that touches a piece of a block that is frozen in place,
/// compared with a bare fault of as much memory plus decoding it? A bare fault is one that a thread
/// serves by a copy alone, and also the page faults of fresh memory.

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/freeze.hpp>

#include "platform/memory/page_faults.hpp"
#include "rest/in_place/frozen_block.hpp"
#include "support/child.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::DataCode;
using tensorpool::DataType;
using tensorpool::FreezeStatistics;
using tensorpool::MemoryPool;
using tensorpool::PooledAllocation;
using tensorpool::stashing::PieceTools;
namespace platform = tensorpool::platform;

constexpr std::size_t piece_bytes = PieceTools::piece_bytes;
constexpr std::size_t page_bytes = 4096;
constexpr double us = 1e6;

// Contents ----------------------------------------------------------------------------------------

struct Content {
    const char* name;
    DataType type;
    void (*fill)(std::span<std::byte> bytes);
};

/// Like the weights of a layer: normal, with a deviation of 0.02.
template <class Word>
void fill_with_weights(std::span<std::byte> bytes) {
    std::mt19937 random(1);
    std::normal_distribution<float> weight(0, 0.02F);
    for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
        const auto word = static_cast<Word>(std::bit_cast<std::uint32_t>(weight(random)) >>
                                            8 * (sizeof(float) - sizeof(Word)));
        std::memcpy(bytes.data() + at, &word, sizeof word);
    }
}

void fill_at_random(std::span<std::byte> bytes) {
    std::mt19937 random(2);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}

void fill_with_zeros(std::span<std::byte> bytes) {
    std::ranges::fill(bytes, std::byte{0});
}

// The subjects, by their order.
constexpr std::size_t faulted = 0;
constexpr std::size_t decoded = 1;
constexpr std::size_t copied = 2;
constexpr std::size_t touched = 3;

/// Lets the handler finish what it does after a fault, on this core or another one, without letting
/// the core sleep.
void wait_for_handler() {
    for (const double end = perf::now_s() + 300e-6; perf::now_s() < end;) {
        std::this_thread::yield();
    }
}

// Subjects ----------------------------------------------------------------------------------------

/// A frozen block whose pieces are touched in turn, so that none is in the window when its turn
/// comes.
class Frozen {
public:
    Frozen(const Content& content, std::size_t pieces) : block_(pool_, pieces * piece_bytes) {
        content.fill(block_.as<std::byte>());
        tensorpool::freeze(
            block_,
            {.type = content.type, .window_bytes = 8 * piece_bytes, .system_calls_may_fail = true});
    }
    FreezeStatistics statistics() const { return tensorpool::freeze_statistics(block_.get()); }
    double touch() {
        volatile std::byte& byte = block_.as<std::byte>()[next()];
        return perf::seconds_of([&] { (void)static_cast<std::byte>(byte); });
    }
    double write() {
        volatile std::byte& byte = block_.as<std::byte>()[next()];
        return perf::seconds_of([&] { byte = std::byte{1}; });
    }
    /// Reads a byte of each page of the whole block. Returns the seconds for a piece.
    double scan() const {
        const std::span<std::byte> bytes = block_.as<std::byte>();
        const double seconds = perf::seconds_of([&] {
            for (std::size_t at = 0; at < bytes.size(); at += page_bytes) {
                (void)static_cast<std::byte>(static_cast<volatile std::byte&>(bytes[at]));
            }
        });
        return seconds * piece_bytes / static_cast<double>(bytes.size());
    }

private:
    std::size_t next() {
        wait_for_handler();
        at_ = (at_ + piece_bytes) % block_.size();
        return at_;
    }

    MemoryPool pool_;
    PooledAllocation block_;
    std::size_t at_ = 0;
};

/// The page faults of one piece of fresh memory, by its first write to each page.
double fault_ordinarily() {
    void* const memory =
        mmap(nullptr, piece_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    const double seconds = perf::seconds_of([&] {
        for (std::size_t at = 0; at < piece_bytes; at += page_bytes) {
            static_cast<volatile char*>(memory)[at] = 1;
        }
    });
    munmap(memory, piece_bytes);
    return seconds;
}

/// A fault that a thread serves by nothing but a copy of 64 KiB: the least that userfaultfd takes.
class ServedByCopy {
public:
    ServedByCopy() {
        source_ = platform::open_fault_source();
        memory_ = static_cast<std::byte*>(
            mmap(nullptr, piece_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (!platform::watch_faults(source_, memory_, piece_bytes)) std::abort();
        std::thread([this] {
            platform::PageFault fault;
            while (platform::next_fault(source_, fault)) {
                (void)!platform::fill_missing(source_, memory_, content_.data(), piece_bytes,
                                              platform::Writable::no);
            }
        }).detach();
    }
    double touch() {
        wait_for_handler();
        madvise(memory_, piece_bytes, MADV_DONTNEED);
        return perf::seconds_of(
            [&] { (void)static_cast<std::byte>(*static_cast<volatile std::byte*>(memory_)); });
    }

private:
    platform::FaultSource source_;
    std::byte* memory_ = nullptr;
    std::vector<std::byte> content_ = std::vector<std::byte>(piece_bytes + page_bytes);
};

/// Decodes pieces of the content in turn, as the handler does.
class Decoder {
public:
    Decoder(const Content& content, std::size_t pieces) : encoded_(pieces) {
        std::vector<std::byte> bytes(pieces * piece_bytes);
        content.fill(bytes);
        if (!tools_.set_up()) std::abort();
        for (std::size_t i = 0; i != pieces; ++i) {
            const auto encoding =
                tools_.encode(std::span(bytes).subspan(i * piece_bytes, piece_bytes), content.type);
            encoded_[i].assign(encoding.begin(), encoding.end());
        }
    }
    double decode() {
        const std::vector<std::byte>& encoded = encoded_[next_++ % encoded_.size()];
        return perf::seconds_of([&] {
            if (tools_.decode(encoded, piece_bytes).empty()) std::abort();
        });
    }

private:
    PieceTools tools_;
    std::vector<std::vector<std::byte>> encoded_;
    std::size_t next_ = 0;
};

/// Where the thread that touches and the threads that serve it run.
struct Placement {
    const char* name;
    unsigned own_core;
    unsigned handler_core;
};

/// What one child process found about one content.
struct Found {
    double medians[5];
    double scan;
    double
        to_page_faults;  // medians of each round's ratio of a touch to a bare fault plus decoding
    double to_copy;
    double at_rest;
};

double ratio_of_touch(const perf::Turns& turns, std::size_t bare) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round != turns.of(touched).size(); ++round) {
        ratios.push_back(turns.of(touched)[round] /
                         (turns.of(bare)[round] + turns.of(decoded)[round]));
    }
    return perf::median(ratios);
}

Found measure(const Content& content, const Placement& placement, const perf::Options& options) {
    const std::size_t pieces = options.quick ? 32 : 1024;
    // The threads that serve faults keep the core on which they were started.
    perf::stay_on_core(placement.handler_core);
    // Never destroyed: its thread waits for faults until the process ends.
    static ServedByCopy& copy = *new ServedByCopy;
    Frozen read(content, pieces);
    perf::stay_on_core(placement.own_core);
    Frozen written(content, pieces);
    Decoder decoder(content, pieces);
    const FreezeStatistics frozen = read.statistics();
    const perf::Turns turns(
        options.rounds,
        {fault_ordinarily, [&] { return decoder.decode(); }, [&] { return copy.touch(); },
         [&] { return read.touch(); }, [&] { return written.write(); }});
    Found found = {};
    for (std::size_t i = 0; i != 5; ++i) found.medians[i] = turns.median(i);
    found.scan = perf::median({read.scan(), read.scan(), read.scan()});
    found.to_page_faults = ratio_of_touch(turns, faulted);
    found.to_copy = ratio_of_touch(turns, copied);
    found.at_rest =
        static_cast<double>(frozen.bytes_at_rest) / static_cast<double>(frozen.frozen_bytes);
    return found;
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 1000);
    perf::Report report(options);
    if (platform::open_fault_source().scope != platform::FaultScope::all) {
        report.print_unmeasured("freeze", "the system lets this process serve no page faults");
        return report.status();
    }
    const Content contents[] = {
        {"FP32 weights", DataType::of<float>(), fill_with_weights<std::uint32_t>},
        {"BF16 weights", {DataCode::bfloat, 0, 16, 1}, fill_with_weights<std::uint16_t>},
        {"random bytes", {}, fill_at_random},
        {"zeros", {}, fill_with_zeros}};
    for (const Placement& placement : {Placement{"one core", 0, 0}, Placement{"two cores", 0, 1}}) {
        std::vector<perf::Cells> rows = {{"median, us", "page faults", "decode", "served by a copy",
                                          "touch", "write", "a piece of a scan",
                                          "touch / (served by a copy + decode)",
                                          "touch / (page faults + decode)", "at rest"}};
        for (const Content& content : contents) {
            const auto found =
                perf::in_a_child([&] { return measure(content, placement, options); });
            if (!found) return 1;
            perf::Cells row = {content.name};
            for (const double median : found->medians) row.push_back(text(median * us, 1));
            row.push_back(text(found->scan * us, 1));
            row.push_back(report.judge(found->to_copy, 1.3));
            row.push_back(text(found->to_page_faults));
            row.push_back(text(found->at_rest));
            rows.push_back(row);
        }
        report.print(
            std::string("freeze: a piece of 64 KiB that is touched in place, ") + placement.name,
            rows);
    }
    return report.status();
}
