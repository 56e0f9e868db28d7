#pragma once

#include <unordered_map>
#include <vector>

#include "common/output.hpp"

namespace tensorpool::command::export_ {

/// Writes Python's pickle, protocol 4, incrementally. Uses only the operations that the viewer of
/// PyTorch's snapshots (MemoryViz.js) understands. Python's pickletools.py describes them.
class PickleWriter {
public:
    explicit PickleWriter(WrittenFile& file);

    void number(std::uint64_t value);
    /// Writes the text as valid UTF-8. Repeated texts are written as references.
    void text(std::string_view text);
    void boolean(bool value) { bytes_ += value ? '\x88' : '\x89'; }
    /// Write keys and values in alternation after this, then end the dictionary.
    void begin_dictionary() { bytes_ += "}("; }
    void end_dictionary() { bytes_ += 'u'; }
    /// Write values after this, with `end_item` after each, then end the list.
    void begin_list();
    void end_item();
    void end_list();
    /// Combines the last two values into a pair.
    void make_pair() { bytes_ += '\x86'; }
    /// Assigns a number to the last value. `again` writes the value once more by that number.
    std::uint32_t remember();
    void again(std::uint32_t remembered);
    /// Ends the pickle. Throws CommandError if the file cannot be written, as all functions above
    /// may.
    void finish();

    // Writes a key of a dictionary and its value.
    void entry(std::string_view key, std::uint64_t value) { text(key), number(value); }
    void entry(std::string_view key, std::string_view value) { text(key), text(value); }

private:
    void little_endian(std::uint64_t value, unsigned bytes);
    void write_out();

    WrittenFile& file_;
    std::string bytes_;
    std::vector<unsigned> items_;  // of each open list: the items since the last append operation
    std::unordered_map<std::string, std::uint32_t> texts_;
    std::uint32_t remembered_ = 0;
};

}  // namespace tensorpool::command::export_
