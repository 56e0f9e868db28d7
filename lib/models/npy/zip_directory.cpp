#include "models/npy/zip_directory.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "models/npy/zip_end.hpp"
#include "models/utf8.hpp"

/// @file
/// Names and numbers follow PKWARE's APPNOTE.TXT, 4.3.7, 4.3.12 and 4.5.3.

namespace tensorpool::files {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint16_t encrypted_flag = 1;
constexpr std::uint16_t sizes_behind_flag = 8;  // the sizes follow the data
constexpr std::uint16_t zip64_extra = 1;
constexpr std::uint32_t in_extra = 0xffffffff;  // the value is in the extra field

/// The fields that the directory and an entry's own header have in common.
struct Header {
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::uint64_t compressed_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;        // in the directory only
    std::uint64_t offset_field = 0;  // the position of `offset` in the file
    std::string_view name;
};

/// Returns the part of an extra field that has the 64-bit values; an empty reader if there is none.
ByteReader find_zip64(ByteReader extra) {
    constexpr std::uint64_t head_bytes = 4;
    while (extra.left() >= head_bytes) {
        const auto id = extra.read<std::uint16_t>("extra id");
        const auto bytes = extra.read<std::uint16_t>("extra size");
        const std::uint64_t begin = extra.position();
        extra.take(bytes, "extra field");
        if (id == zip64_extra) return extra.part(begin, extra.position());
    }
    return extra.part(extra.position(), extra.position());
}

/// Reads the 64-bit values of the extra field. They have a fixed order, and each is present only if
/// the field of 32 bits says so. `offset` is nullptr for an entry's own header, which has none.
void read_extra(ByteReader& in, std::uint64_t bytes, Header& header, std::uint64_t* offset) {
    const std::uint64_t begin = in.position();
    in.take(bytes, "extra field");
    ByteReader extra = find_zip64(in.part(begin, in.position()));
    if (header.bytes == in_extra) header.bytes = extra.read<std::uint64_t>("zip64 size");
    if (header.compressed_bytes == in_extra) {
        header.compressed_bytes = extra.read<std::uint64_t>("zip64 compressed size");
    }
    if (offset != nullptr && *offset == in_extra) {
        *offset = extra.read<std::uint64_t>("zip64 offset");
    }
}

void read_signature(ByteReader& in, const char* field, std::uint32_t expected) {
    const auto found = in.read<std::uint32_t>(field);
    if (found != expected) in.fail_read(field, found, std::to_string(expected));
}

/// Reads the directory's header of an entry. After its name was read, errors use the name.
Header read_central(ByteReader& in) {
    read_signature(in, "signature", central_signature);
    Header header;
    in.take(2 + 2, "versions");
    header.flags = in.read<std::uint16_t>("flags");
    header.method = in.read<std::uint16_t>("method");
    in.take(2 + 2 + 4, "time and checksum");
    header.compressed_bytes = in.read<std::uint32_t>("compressed size");
    header.bytes = in.read<std::uint32_t>("size");
    const auto name_bytes = in.read<std::uint16_t>("name length");
    const auto extra_bytes = in.read<std::uint16_t>("extra length");
    const auto comment_bytes = in.read<std::uint16_t>("comment length");
    in.take(2 + 2 + 4, "disk and attributes");
    header.offset_field = in.position();
    header.offset = in.read<std::uint32_t>("offset");
    header.name = in.take_text(name_bytes, "name");
    in.call(header.name);
    if (!is_utf8(header.name)) {
        in.fail("name", in.position() - name_bytes,
                "found " + in_quotes(header.name) + ", expected UTF-8");
    }
    read_extra(in, extra_bytes, header, &header.offset);
    in.take(comment_bytes, "comment");
    return header;
}

/// Reads the header in front of an entry's data.
Header read_local(ByteReader& in) {
    read_signature(in, "local signature", local_signature);
    Header header;
    in.take(2, "local version");
    header.flags = in.read<std::uint16_t>("local flags");
    header.method = in.read<std::uint16_t>("local method");
    in.take(2 + 2 + 4, "local time and checksum");
    header.compressed_bytes = in.read<std::uint32_t>("local compressed size");
    header.bytes = in.read<std::uint32_t>("local size");
    const auto name_bytes = in.read<std::uint16_t>("local name length");
    const auto extra_bytes = in.read<std::uint16_t>("local extra length");
    header.name = in.take_text(name_bytes, "local name");
    read_extra(in, extra_bytes, header, nullptr);
    return header;
}

/// `header_begin` is the position of the local header.
void check_equal(const ByteReader& in, std::uint64_t header_begin, const Header& central,
                 const Header& local) {
    const auto fail = [&](const char* field, const std::string& found,
                          const std::string& expected) {
        in.fail(
            field, header_begin,
            "found " + found + " in its own header, expected " + expected + " as in the directory");
    };
    const auto check = [&](const char* field, std::uint64_t found, std::uint64_t expected) {
        if (found != expected) fail(field, std::to_string(found), std::to_string(expected));
    };
    if (local.name != central.name)
        fail("local name", in_quotes(local.name), in_quotes(central.name));
    check("local flags", local.flags, central.flags);
    check("local method", local.method, central.method);
    if ((central.flags & sizes_behind_flag) != 0) return;
    check("local size", local.bytes, central.bytes);
    check("local compressed size", local.compressed_bytes, central.compressed_bytes);
}

void check_stored(const ByteReader& in, std::uint64_t header_begin, const Header& header) {
    const auto fail = [&](const char* field, const std::string& problem) {
        in.fail(field, header_begin, problem);
    };
    if ((header.flags & encrypted_flag) != 0) {
        fail("flags", "found an encrypted entry, expected it stored");
    }
    if (header.method != 0) {
        fail("method", "found method " + std::to_string(header.method) +
                           ", a compressed entry, expected 0, stored: save with numpy.savez "
                           "instead of numpy.savez_compressed");
    }
    if (header.bytes != header.compressed_bytes) {
        fail("size", "found " + std::to_string(header.bytes) + " B, expected " +
                         std::to_string(header.compressed_bytes) + " B, since it is stored");
    }
}

/// Reads an entry at `in`'s position in the directory. Its header and data must lie before
/// `directory_begin`.
ZipEntry read_entry(std::uint64_t index, ByteReader& in, std::uint64_t directory_begin) {
    in.enter("entry", index);
    const Header central = read_central(in);
    if (central.offset > directory_begin) {
        in.fail("offset", central.offset_field,
                "found " + std::to_string(central.offset) +
                    ", expected one before the directory at " + std::to_string(directory_begin));
    }
    ByteReader own = in.part(central.offset, directory_begin);
    const Header local = read_local(own);
    check_equal(own, central.offset, central, local);
    check_stored(own, central.offset, central);
    const std::uint64_t data_begin = own.position();
    own.take(central.compressed_bytes, "data");
    return {central.name, central.offset, data_begin, own.position()};
}

/// Checks that entries do not overlap. They may be in any order.
void check_apart(ByteReader& in, const std::vector<ZipEntry>& entries) {
    std::vector<std::size_t> order(entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return entries[i].header_begin; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const ZipEntry& previous = entries[order[i - 1]];
        const ZipEntry& entry = entries[order[i]];
        if (previous.data_end <= entry.header_begin) continue;
        in.enter("entry", order[i]);
        in.call(entry.name);
        in.fail("offset", entry.header_begin,
                "found it within entry " + in_quotes(previous.name) +
                    ", expected it at or behind byte " + std::to_string(previous.data_end));
    }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const ModelContents& file) {
    const ZipEnd end = read_zip_end(file.bytes, file.name);
    ByteReader in(file.bytes, end.directory_begin, end.directory_end, file.name);
    std::vector<ZipEntry> entries;
    for (std::uint64_t i = 0; i < end.entries; ++i) {
        entries.push_back(read_entry(i, in, end.directory_begin));
    }
    in.leave();
    if (in.left() != 0) {
        in.fail("directory", in.position(),
                "found " + std::to_string(in.left()) + " B behind its " +
                    std::to_string(end.entries) + " entries, expected none");
    }
    check_apart(in, entries);
    return entries;
}

}  // namespace tensorpool::files
