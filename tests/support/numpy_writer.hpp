#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/written_file.hpp"

namespace tensorpool::testing {

/// Makes a .npy file. `header` is the Python literal; it is padded so that the data begins at a
/// multiple of 64.
inline WrittenFile npy_file(const std::string& header, const std::string& data,
                            unsigned version = 1) {
    WrittenFile file;
    file.append_text("magic", "\x93NUMPY");
    file.append_field("version", static_cast<std::uint16_t>(version));
    const std::uint64_t begin = version == 1 ? 10 : 12;
    const std::uint64_t padded = (begin + header.size() + 1 + 63) / 64 * 64 - begin;
    if (version == 1) {
        file.append_field("header length", static_cast<std::uint16_t>(padded));
    } else {
        file.append_field("header length", static_cast<std::uint32_t>(padded));
    }
    file.append_text("header", header + std::string(padded - header.size() - 1, ' ') + "\n");
    file.append_text("data", data);
    return file;
}

/// Returns the literal that NumPy writes; `shape` is, for example, "(2, 3)".
inline std::string npy_header(const std::string& descr, const std::string& shape,
                              bool fortran_order = false) {
    return "{'descr': '" + descr + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
           ", 'shape': " + shape + ", }";
}

/// Makes a zip file in memory, with stored entries. Fields are named as errors name them:
/// "entry 0 'a.npy': local signature", and so on.
class ZipWriter {
public:
    struct Entry {
        std::string name;
        std::string data;
        std::uint16_t method = 0;  ///< 8: claims to be deflated
        std::uint16_t flags = 0;
        bool zip64 = false;         ///< sizes are in an extra field of 64 bits, as in NumPy's files
        bool sizes_behind = false;  ///< sizes are in a data descriptor, as in streams
    };

    ZipWriter& add(Entry entry) {
        entries_.push_back(std::move(entry));
        return *this;
    }
    ZipWriter& add(std::string name, const WrittenFile& data) {
        return add({.name = std::move(name), .data = data.bytes()});
    }
    /// Adds the 64-bit end of the central directory.
    ZipWriter& zip64() {
        zip64_ = true;
        return *this;
    }
    ZipWriter& comment(std::string text) {
        comment_ = std::move(text);
        return *this;
    }

    WrittenFile write() const {
        WrittenFile file;
        std::vector<std::uint64_t> offsets;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            offsets.push_back(file.size());
            write_local(i, file);
        }
        const std::uint64_t directory = file.size();
        for (std::size_t i = 0; i < entries_.size(); ++i) write_central(i, offsets[i], file);
        write_end(directory, file.size() - directory, file);
        return file;
    }

private:
    static std::string label(std::size_t index, const Entry& entry, const char* field) {
        return "entry " + std::to_string(index) + " '" + entry.name + "': " + field;
    }
    static std::uint16_t flags_of(const Entry& entry) {
        return static_cast<std::uint16_t>(entry.flags | (entry.sizes_behind ? 8 : 0));
    }

    void write_local(std::size_t index, WrittenFile& file) const {
        const Entry& entry = entries_[index];
        const auto at = [&](const char* field) { return label(index, entry, field); };
        const bool absent = entry.sizes_behind;
        const auto size = static_cast<std::uint32_t>(absent ? 0 : entry.data.size());
        file.append_field(at("local signature"), std::uint32_t{0x04034b50});
        file.append_number(std::uint16_t{20});
        file.append_field(at("local flags"), flags_of(entry));
        file.append_field(at("local method"), entry.method);
        file.append_number(std::uint32_t{0x00210000});  // 1980-01-01 00:00
        file.append_number(std::uint32_t{0});           // the checksum, which the reader ignores
        const std::uint32_t small = entry.zip64 ? 0xffffffff : size;
        file.append_field(at("local compressed size"), small);
        file.append_field(at("local size"), small);
        file.append_field(at("local name length"), static_cast<std::uint16_t>(entry.name.size()));
        file.append_field(at("local extra length"), std::uint16_t(entry.zip64 ? 20 : 0));
        file.append_text(at("local name"), entry.name);
        if (entry.zip64) {
            file.append_field(at("local extra id"), std::uint16_t{1});
            file.append_field(at("local extra size"), std::uint16_t{16});
            file.append_field(at("local zip64 size"), std::uint64_t{size});
            file.append_field(at("local zip64 compressed size"), std::uint64_t{size});
        }
        file.append_text(at("data"), entry.data);
        if (!entry.sizes_behind) return;
        file.append_number(std::uint32_t{0x08074b50});
        file.append_number(std::uint32_t{0});
        file.append_number(static_cast<std::uint32_t>(entry.data.size()));
        file.append_number(static_cast<std::uint32_t>(entry.data.size()));
    }

    void write_central(std::size_t index, std::uint64_t offset, WrittenFile& file) const {
        const Entry& entry = entries_[index];
        const auto at = [&](const char* field) { return label(index, entry, field); };
        const auto size = static_cast<std::uint32_t>(entry.data.size());
        file.append_field(at("signature"), std::uint32_t{0x02014b50});
        file.append_number(std::uint16_t{20});
        file.append_number(std::uint16_t{20});
        file.append_field(at("flags"), flags_of(entry));
        file.append_field(at("method"), entry.method);
        file.append_number(std::uint32_t{0x00210000});
        file.append_number(std::uint32_t{0});
        file.append_field(at("compressed size"), entry.zip64 ? 0xffffffff : size);
        file.append_field(at("size"), entry.zip64 ? 0xffffffff : size);
        file.append_field(at("name length"), static_cast<std::uint16_t>(entry.name.size()));
        file.append_field(at("extra length"), std::uint16_t(entry.zip64 ? 28 : 0));
        file.append_field(at("comment length"), std::uint16_t{0});
        file.append_field(at("disk"), std::uint16_t{0});
        file.append_number(std::uint16_t{0});
        file.append_number(std::uint32_t{0});
        file.append_field(at("offset"),
                          entry.zip64 ? 0xffffffff : static_cast<std::uint32_t>(offset));
        file.append_text(at("name"), entry.name);
        if (!entry.zip64) return;
        file.append_field(at("extra id"), std::uint16_t{1});
        file.append_field(at("extra size"), std::uint16_t{24});
        file.append_field(at("zip64 size"), std::uint64_t{size});
        file.append_field(at("zip64 compressed size"), std::uint64_t{size});
        file.append_field(at("zip64 offset"), offset);
    }

    void write_end(std::uint64_t directory, std::uint64_t bytes, WrittenFile& file) const {
        const auto count = entries_.size();
        if (zip64_) write_end_64(directory, bytes, file);
        file.append_field("end of directory: signature", std::uint32_t{0x06054b50});
        file.append_field("end of directory: disk", std::uint16_t{0});
        file.append_field("end of directory: directory disk", std::uint16_t{0});
        const auto small = static_cast<std::uint16_t>(zip64_ ? 0xffff : count);
        file.append_field("end of directory: entries here", small);
        file.append_field("end of directory: entries", small);
        file.append_field("end of directory: bytes",
                          static_cast<std::uint32_t>(zip64_ ? 0xffffffff : bytes));
        file.append_field("end of directory: offset",
                          static_cast<std::uint32_t>(zip64_ ? 0xffffffff : directory));
        file.append_field("end of directory: comment length",
                          static_cast<std::uint16_t>(comment_.size()));
        file.append_text("end of directory: comment", comment_);
    }

    void write_end_64(std::uint64_t directory, std::uint64_t bytes, WrittenFile& file) const {
        const std::uint64_t begin = file.size();
        file.append_field("zip64 end of directory: signature", std::uint32_t{0x06064b50});
        file.append_number(std::uint64_t{44});
        file.append_number(std::uint16_t{45});
        file.append_number(std::uint16_t{45});
        file.append_field("zip64 end of directory: disk", std::uint32_t{0});
        file.append_field("zip64 end of directory: directory disk", std::uint32_t{0});
        file.append_field("zip64 end of directory: entries here", std::uint64_t{entries_.size()});
        file.append_field("zip64 end of directory: entries", std::uint64_t{entries_.size()});
        file.append_field("zip64 end of directory: bytes", bytes);
        file.append_field("zip64 end of directory: offset", directory);
        file.append_field("zip64 locator: signature", std::uint32_t{0x07064b50});
        file.append_field("zip64 locator: disk", std::uint32_t{0});
        file.append_field("zip64 locator: offset", begin);
        file.append_field("zip64 locator: disks", std::uint32_t{1});
    }

    std::vector<Entry> entries_;
    bool zip64_ = false;
    std::string comment_;
};

}  // namespace tensorpool::testing
