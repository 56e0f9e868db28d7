#include "export/pickle_writer.hpp"

#include <bit>

#include "common/html.hpp"

namespace tensorpool::command::export_ {
namespace {

// Python's own pickler appends this many items to a list at once. The viewer's stack holds few
// more.
constexpr unsigned max_items = 1000;
constexpr std::size_t written_at_once = std::size_t{1} << 16;

}  // namespace

PickleWriter::PickleWriter(WrittenFile& file) : file_(file), bytes_("\x80\x04") {}

void PickleWriter::little_endian(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void PickleWriter::number(std::uint64_t value) {
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

void PickleWriter::text(std::string_view text) {
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

std::uint32_t PickleWriter::remember() {
    if (remembered_ < 0x100) {
        bytes_ += 'q';
        little_endian(remembered_, 1);
    } else {
        bytes_ += 'r';
        little_endian(remembered_, 4);
    }
    return remembered_++;
}

void PickleWriter::again(std::uint32_t remembered) {
    if (remembered < 0x100) {
        bytes_ += 'h';
        little_endian(remembered, 1);
    } else {
        bytes_ += 'j';
        little_endian(remembered, 4);
    }
}

void PickleWriter::begin_list() {
    bytes_ += "](";
    items_.push_back(0);
}

void PickleWriter::end_item() {
    if (++items_.back() < max_items) return;
    bytes_ += "e(";
    items_.back() = 0;
    if (bytes_.size() > written_at_once) write_out();
}

void PickleWriter::end_list() {
    bytes_ += 'e';
    items_.pop_back();
}

void PickleWriter::write_out() {
    file_.write(bytes_);
    bytes_.clear();
}

void PickleWriter::finish() {
    bytes_ += '.';
    write_out();
}

}  // namespace tensorpool::command::export_
