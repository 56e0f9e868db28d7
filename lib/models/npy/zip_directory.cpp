#include "models/npy/npy.hpp"

/// @file
/// Zip files, and NumPy's archives: zip files of .npy files, as numpy.savez writes them. Names and
/// numbers follow PKWARE's APPNOTE.TXT, 4.3.7, 4.3.12 and 4.5.3.

namespace tensorpool::files {
namespace {

/// The position of a zip file's directory, and the number of its entries.
struct ZipEnd {
    std::uint64_t directory_begin = 0;
    std::uint64_t directory_end = 0;
    std::uint64_t entries = 0;
};

constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator_signature = 0x07064b50;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t end64_bytes = 56;
constexpr std::uint64_t locator_bytes = 20;
constexpr std::uint64_t max_comment_bytes = 65535;
// The bytes of a directory entry without its name.
constexpr std::uint64_t min_entry_bytes = 46;

/// The sizes and offsets of an end record.
struct Record {
    std::uint64_t disk = 0;
    std::uint64_t directory_disk = 0;
    std::uint64_t entries_here = 0;
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
};

void read_signature(ByteReader& in, Field field, std::uint32_t expected) {
    const auto found = in.read<std::uint32_t>(field);
    if (found != expected) in.fail_read(field, found, std::to_string(expected));
}

/// Finds the record at the end of a zip file, of 32 or 64 bits, and checks that the directory lies
/// within the file.
class EndReader {
public:
    EndReader(std::span<const std::byte> file, const std::string& file_name)
        : file_(file), file_name_(file_name) {}

    ZipEnd read() const {
        const std::uint64_t end = find_end();
        if (const std::optional<std::uint64_t> end64 = find_end64(end)) {
            ByteReader in = at(*end64);
            read_signature(in, "zip64 end of directory: signature", end64_signature);
            in.take(8 + 2 + 2, "versions");
            return directory_of(read_record<std::uint32_t, std::uint64_t, std::uint64_t>(in),
                                *end64);
        }
        ByteReader in = at(end);
        in.take(4, "signature");
        return directory_of(read_record<std::uint16_t, std::uint16_t, std::uint32_t>(in), end);
    }

private:
    ByteReader at(std::uint64_t begin) const {
        return {file_, std::min<std::uint64_t>(begin, file_.size()), file_.size(), file_name_};
    }

    /// Finds the last position that has the signature and a comment that ends at the end of the
    /// file.
    std::uint64_t find_end() const {
        const std::uint64_t size = file_.size();
        const std::uint64_t most = std::min(size, end_bytes + max_comment_bytes);
        for (std::uint64_t back = end_bytes; back <= most; ++back) {
            ByteReader in = at(size - back);
            if (in.read<std::uint32_t>("signature") != end_signature) continue;
            in.take(end_bytes - 4 - 2, "record");
            if (in.read<std::uint16_t>("comment length") == in.left()) return size - back;
        }
        at(size).fail("end of directory", size,
                      "found none within the last " + std::to_string(most) +
                          " B, expected the record at the end of a zip file: it is cut short");
    }

    /// Returns the position of the 64-bit record, if there is a locator of it directly before
    /// `end`.
    std::optional<std::uint64_t> find_end64(std::uint64_t end) const {
        if (end < locator_bytes) return std::nullopt;
        ByteReader in = at(end - locator_bytes);
        if (in.read<std::uint32_t>("signature") != locator_signature) return std::nullopt;
        in.take(4, "zip64 locator: disk");
        const auto offset = in.read<std::uint64_t>("zip64 locator: offset");
        const std::uint64_t most = end - locator_bytes;
        if (offset > most || most - offset < end64_bytes) {
            in.fail_read("zip64 locator: offset", offset,
                         "a record of " + std::to_string(end64_bytes) + " B before byte " +
                             std::to_string(most));
        }
        return offset;
    }

    /// REQUIRES: the whole record is there.
    template <class Disk, class Count, class Bytes>
    static Record read_record(ByteReader& in) {
        constexpr const char* field = "end of directory";
        return {.disk = in.read<Disk>(field),
                .directory_disk = in.read<Disk>(field),
                .entries_here = in.read<Count>(field),
                .entries = in.read<Count>(field),
                .bytes = in.read<Bytes>(field),
                .offset = in.read<Bytes>(field)};
    }

    /// The directory must end before the record, which is at `record_begin`.
    ZipEnd directory_of(const Record& record, std::uint64_t record_begin) const {
        const auto fail = [&](const std::string& problem) {
            at(record_begin).fail("end of directory", record_begin, problem);
        };
        if (record.disk != 0 || record.directory_disk != 0 ||
            record.entries_here != record.entries) {
            fail("found an archive of several disks, expected one");
        }
        if (record.offset > record_begin || record.bytes > record_begin - record.offset) {
            fail("found a directory of " + std::to_string(record.bytes) + " B at byte " +
                 std::to_string(record.offset) + ", expected it before byte " +
                 std::to_string(record_begin));
        }
        if (record.entries > record.bytes / min_entry_bytes) {
            fail("found " + std::to_string(record.entries) + " entries in a directory of " +
                 std::to_string(record.bytes) + " B, expected at least " +
                 std::to_string(min_entry_bytes) + " B for each");
        }
        return {record.offset, record.offset + record.bytes, record.entries};
    }

    std::span<const std::byte> file_;
    const std::string& file_name_;
};

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
    std::uint16_t name_bytes = 0;
    std::uint16_t extra_bytes = 0;
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
void read_extra(ByteReader& in, Header& header, std::uint64_t* offset) {
    const std::uint64_t begin = in.position();
    in.take(header.extra_bytes, "extra field");
    ByteReader extra = find_zip64(in.part(begin, in.position()));
    if (header.bytes == in_extra) header.bytes = extra.read<std::uint64_t>("zip64 size");
    if (header.compressed_bytes == in_extra) {
        header.compressed_bytes = extra.read<std::uint64_t>("zip64 compressed size");
    }
    if (offset != nullptr && *offset == in_extra) {
        *offset = extra.read<std::uint64_t>("zip64 offset");
    }
}

/// Reads what both headers begin with: the signature, versions of `version_bytes` bytes, and all up
/// to the lengths. In errors, `prefix` comes before the names of the fields.
Header read_fields(ByteReader& in, const char* prefix, std::uint32_t signature,
                   std::uint64_t version_bytes) {
    read_signature(in, {prefix, "signature"}, signature);
    Header header;
    in.take(version_bytes, {prefix, "version"});
    header.flags = in.read<std::uint16_t>({prefix, "flags"});
    header.method = in.read<std::uint16_t>({prefix, "method"});
    in.take(2 + 2 + 4, {prefix, "time and checksum"});
    header.compressed_bytes = in.read<std::uint32_t>({prefix, "compressed size"});
    header.bytes = in.read<std::uint32_t>({prefix, "size"});
    header.name_bytes = in.read<std::uint16_t>({prefix, "name length"});
    header.extra_bytes = in.read<std::uint16_t>({prefix, "extra length"});
    return header;
}

/// Reads the directory's header of an entry. After its name was read, errors use the name.
Header read_central(ByteReader& in) {
    Header header = read_fields(in, "", central_signature, 2 + 2);
    const auto comment_bytes = in.read<std::uint16_t>("comment length");
    in.take(2 + 2 + 4, "disk and attributes");
    header.offset_field = in.position();
    header.offset = in.read<std::uint32_t>("offset");
    header.name = in.take_text(header.name_bytes, "name");
    in.call(header.name);
    if (!is_utf8(header.name)) {
        in.fail("name", in.position() - header.name_bytes,
                "found " + in_quotes(header.name) + ", expected UTF-8");
    }
    read_extra(in, header, &header.offset);
    in.take(comment_bytes, "comment");
    return header;
}

/// Reads the header in front of an entry's data.
Header read_local(ByteReader& in) {
    Header header = read_fields(in, "local ", local_signature, 2);
    header.name = in.take_text(header.name_bytes, "local name");
    read_extra(in, header, nullptr);
    return header;
}

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

constexpr std::string_view ending = ".npy";

void read_entry(std::uint64_t index, const ZipEntry& entry, ModelContents& to) {
    ByteReader in(to.bytes, entry.data_begin, entry.data_end, to.name);
    in.enter("entry", index);
    in.call(entry.name);
    if (!entry.name.ends_with(ending)) {
        in.fail("name", entry.header_begin,
                "expected one that ends with .npy: it is not an archive of NumPy");
    }
    read_npy_array(in, entry.name.substr(0, entry.name.size() - ending.size()), to);
}

void refuse_duplicates(const std::vector<ZipEntry>& entries, ModelContents& to) {
    const auto duplicates = to.index_tensors();
    if (!duplicates) return;
    const ZipEntry& entry = entries[duplicates->second];
    ByteReader(to.bytes, to.name)
        .fail_duplicate("entry", duplicates->second, entry.name, duplicates->first, "name", "name",
                        entry.header_begin);
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const ModelContents& file) {
    const ZipEnd end = EndReader(file.bytes, file.name).read();
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

void read_npz(ModelContents& to) {
    to.format = ModelFormat::npz;
    const std::vector<ZipEntry> entries = read_zip_directory(to);
    for (std::size_t i = 0; i < entries.size(); ++i) read_entry(i, entries[i], to);
    refuse_duplicates(entries, to);
}

}  // namespace tensorpool::files
