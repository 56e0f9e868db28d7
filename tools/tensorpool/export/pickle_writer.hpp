#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspect/written_file.hpp"

namespace tensorpool::command::export_ {

/// Writes Python's pickle, protocol 4, piece by piece: only what the viewer of PyTorch's snapshots
/// understands too (MemoryViz.js). The operations are described in Python's pickletools.py.
class PickleWriter {
public:
    explicit PickleWriter(inspect::WrittenFile& file);

    void number(std::uint64_t value);
    /// Made valid UTF-8; the same text is written once.
    void text(std::string_view text);
    void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
    /// Then keys and values by turns, and the end.
    void begin_dictionary() { bytes_ += "}("; }
    void end_dictionary() { bytes_ += 'u'; }
    /// Then values, `end_item` after each, and the end.
    void begin_list();
    void end_item();
    void end_list();
    /// After two values: they become a pair.
    void make_pair() { bytes_ += '\x86'; }
    /// Gives what was written last a number, by which `again` writes it once more.
    std::uint32_t remember();
    void again(std::uint32_t remembered);
    /// Ends the whole. Throws CommandError where the file cannot be written, as all above may.
    void finish();

    // A key of a dictionary with its value.
    void entry(std::string_view key, std::uint64_t value) { text(key), number(value); }
    void entry(std::string_view key, std::string_view value) { text(key), text(value); }

private:
    void little_endian(std::uint64_t value, unsigned bytes);
    void write_out();

    inspect::WrittenFile& file_;
    std::string bytes_;
    std::vector<unsigned> items_;  // of each open list: since the last of them were put into it
    std::unordered_map<std::string, std::uint32_t> texts_;
    std::uint32_t remembered_ = 0;
};

}  // namespace tensorpool::command::export_
