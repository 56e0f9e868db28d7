#pragma once

/// @file
/// Writes recordings in the formats of other tools. Each function throws CommandError if the file
/// cannot be written.

#include <unordered_map>

#include "common/html.hpp"
#include "common/output.hpp"
#include "formats/trace/history.hpp"

namespace tensorpool::command::export_ {

/// Writes Python's pickle, protocol 4, incrementally. Uses only the operations that the viewer of
/// PyTorch's snapshots (MemoryViz.js) understands. Python's pickletools.py describes them.
class PickleWriter {
public:
    explicit PickleWriter(WrittenFile& file) : file_(file), bytes_("\x80\x04") {}

    void number(std::uint64_t value) {
        if (value < 0x100) {
            put('K', value, 1);
        } else if (value < 0x10000) {
            put('M', value, 2);
        } else if (value < 0x80000000) {
            put('J', value, 4);
        } else {
            // The fewest bytes that hold the value with a sign bit.
            const auto bytes = static_cast<unsigned>(std::bit_width(value)) / 8 + 1;
            put('\x8a', bytes, 1);
            little_endian(value, bytes < 8 ? bytes : 8);
            if (bytes > 8) bytes_ += '\0';
        }
    }
    /// Writes the text as valid UTF-8. Repeated texts are written as references.
    void text(std::string_view text) {
        const auto [at, is_new] = texts_.try_emplace(std::string(text), 0);
        if (!is_new) return again(at->second);
        const std::string valid = valid_utf8(text);
        valid.size() < 0x100 ? put('\x8c', valid.size(), 1) : put('X', valid.size(), 4);
        bytes_ += valid;
        at->second = remember();
    }
    void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
    /// Write keys and values in alternation after this, then end the dictionary.
    void begin_dictionary() { bytes_ += "}("; }
    void end_dictionary() { bytes_ += 'u'; }
    /// Write values after this, with `end_item` after each, then end the list.
    void begin_list() {
        bytes_ += "](";
        items_.push_back(0);
    }
    void end_item() {
        if (++items_.back() < max_items) return;
        bytes_ += "e(";
        items_.back() = 0;
        if (bytes_.size() > written_at_once) write_out();
    }
    void end_list() {
        bytes_ += 'e';
        items_.pop_back();
    }
    /// Combines the last two values into a pair.
    void make_pair() { bytes_ += '\x86'; }
    /// Assigns a number to the last value. `again` writes the value once more by that number.
    std::uint32_t remember() {
        remembered_ < 0x100 ? put('q', remembered_, 1) : put('r', remembered_, 4);
        return remembered_++;
    }
    void again(std::uint32_t remembered) {
        remembered < 0x100 ? put('h', remembered, 1) : put('j', remembered, 4);
    }
    /// Ends the pickle. Throws CommandError if the file cannot be written, as all functions above
    /// may.
    void finish() {
        bytes_ += '.';
        write_out();
    }

    // Writes a key of a dictionary and its value.
    void entry(std::string_view key, std::uint64_t value) { text(key), number(value); }
    void entry(std::string_view key, std::string_view value) { text(key), text(value); }

private:
    // Python's own pickler appends this many items to a list at once. The viewer's stack holds few
    // more.
    static constexpr unsigned max_items = 1000;
    static constexpr std::size_t written_at_once = std::size_t{1} << 16;

    /// Writes an operation and its operand.
    void put(char operation, std::uint64_t value, unsigned bytes) {
        bytes_ += operation;
        little_endian(value, bytes);
    }
    void little_endian(std::uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    }
    void write_out() {
        file_.write(bytes_);
        bytes_.clear();
    }

    WrittenFile& file_;
    std::string bytes_;
    std::vector<unsigned> items_;  // of each open list: the items since the last append operation
    std::unordered_map<std::string, std::uint32_t> texts_;
    std::uint32_t remembered_ = 0;
};

using trace::Range;

/// The slabs of a device's allocator over time. Slabs that touch are merged.
class Slabs {
public:
    void add(Range range) {
        ever_.add(range);
        have_grown_ = now_.add(range) || have_grown_;
    }
    void remove(Range range) { now_.remove(range); }

    /// The present slabs, in order of address.
    std::vector<Range> all() const { return now_.all(); }
    /// Whether the address has lain in a slab at any time.
    bool has_known(std::uint64_t address) const { return ever_.contains(address); }
    /// Whether a slab was extended at its end or its beginning.
    bool have_grown() const noexcept { return have_grown_; }

private:
    trace::RangeSet now_;
    trace::RangeSet ever_;
    bool have_grown_ = false;
};

using trace::BlockFacts;
using trace::History;
using trace::Lifetime;
using trace::Recording;

enum class At { peak, end };

/// A moment in a recording, given as the number of calls that have returned.
struct Moment {
    std::uint32_t calls = 0;
    bool has_begun(const Lifetime& lifetime) const noexcept {
        return lifetime.begin == Lifetime::none || lifetime.begin < calls;
    }
    bool has_ended(const Lifetime& lifetime) const noexcept {
        return lifetime.end != Lifetime::none && lifetime.end < calls;
    }
    /// Whether its owner has freed it. Until it ends, streams may still use it.
    bool is_deferred(const Lifetime& lifetime) const noexcept {
        return lifetime.deferred != Lifetime::none && lifetime.deferred < calls;
    }
    bool is_alive(const Lifetime& lifetime) const noexcept {
        return has_begun(lifetime) && !has_ended(lifetime);
    }
};

/// Finds a moment. The peak is the first moment at which all processes together have the most bytes
/// alive.
Moment moment_of(const History& history, At at);

/// Writes a memory snapshot of PyTorch (torch.cuda.memory._snapshot) for memory_viz. Each process
/// is a device, followed by a device for each allocator of device memory. The address ranges of
/// pools are segments, and so are slabs. A device's history holds its last `max_entries` calls up
/// to the moment. Returns how many calls were left out.
std::uint64_t write_snapshot(const History& history, Moment moment, std::uint64_t max_entries,
                             WrittenFile& file);

/// Writes a heap profile of gperftools, for jeprof and pprof: the blocks alive at the moment, and
/// all blocks allocated until then, by sampled call stack, or by pool and scope if no stacks were
/// sampled. It contains all names, so that readers need no program.
void write_heap_profile(const History& history, Moment moment, WrittenFile& file);

/// Writes a trace for the viewers of Chrome and Perfetto: the live bytes of each pool, arena,
/// scratch and device, the scopes, and the failed requests.
void write_chrome_trace(const History& history, WrittenFile& file);

/// Writes a log as RMM's logging_resource_adaptor does: each block's allocation and free. Blocks
/// made before the recording are allocated in the first lines. A resized block is freed and
/// allocated again. Addresses of the second process are moved by 2^48, of the third by twice that,
/// and so on. Those of each device's allocator are moved likewise, after the processes.
void write_rmm_log(const History& history, WrittenFile& file);

}  // namespace tensorpool::command::export_
