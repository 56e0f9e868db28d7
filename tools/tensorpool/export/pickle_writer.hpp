#pragma once

#include <bit>
#include <unordered_map>
#include <vector>

#include "common/html.hpp"
#include "common/output.hpp"

namespace tensorpool::command::export_ {

/// Writes Python's pickle, protocol 4, incrementally. Uses only the operations that the viewer of
/// PyTorch's snapshots (MemoryViz.js) understands. Python's pickletools.py describes them.
class PickleWriter {
public:
    explicit PickleWriter(WrittenFile& file) : file_(file), bytes_("\x80\x04") {}

    void number(std::uint64_t value) {
        if (value < 0x100) {
            bytes_ += 'K';
            little_endian(value, 1);
        } else if (value < 0x10000) {
            bytes_ += 'M';
            little_endian(value, 2);
        } else if (value < 0x80000000) {
            bytes_ += 'J';
            little_endian(value, 4);
        } else {
            // The fewest bytes that hold the value with a sign bit.
            const auto bytes = static_cast<unsigned>(std::bit_width(value)) / 8 + 1;
            bytes_ += '\x8a';
            bytes_ += static_cast<char>(bytes);
            little_endian(value, bytes < 8 ? bytes : 8);
            if (bytes > 8) bytes_ += '\0';
        }
    }
    /// Writes the text as valid UTF-8. Repeated texts are written as references.
    void text(std::string_view text) {
        const auto [at, is_new] = texts_.try_emplace(std::string(text), 0);
        if (!is_new) return again(at->second);
        const std::string valid = valid_utf8(text);
        if (valid.size() < 0x100) {
            bytes_ += '\x8c';
            little_endian(valid.size(), 1);
        } else {
            bytes_ += 'X';
            little_endian(valid.size(), 4);
        }
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
        if (remembered_ < 0x100) {
            bytes_ += 'q';
            little_endian(remembered_, 1);
        } else {
            bytes_ += 'r';
            little_endian(remembered_, 4);
        }
        return remembered_++;
    }
    void again(std::uint32_t remembered) {
        if (remembered < 0x100) {
            bytes_ += 'h';
            little_endian(remembered, 1);
        } else {
            bytes_ += 'j';
            little_endian(remembered, 4);
        }
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

}  // namespace tensorpool::command::export_
