#include "models/npy/zip_end.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

/// @file
/// Names and numbers follow PKWARE's APPNOTE.TXT, 4.3.14 to 4.3.16.

namespace tensorpool::files {
namespace {

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

class EndReader {
public:
    EndReader(std::span<const std::byte> file, const std::string& file_name)
        : file_(file), file_name_(file_name) {}

    ZipEnd read() {
        const std::uint64_t end = find_end();
        const std::optional<std::uint64_t> end64 = find_end64(end);
        const Record record = end64 ? read_end64(*end64) : read_end(end);
        return directory_of(record, end64 ? *end64 : end);
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

    Record read_end(std::uint64_t begin) const {
        ByteReader in = at(begin);
        in.take(4, "end of directory: signature");
        Record record;
        record.disk = in.read<std::uint16_t>("end of directory: disk");
        record.directory_disk = in.read<std::uint16_t>("end of directory: directory disk");
        record.entries_here = in.read<std::uint16_t>("end of directory: entries here");
        record.entries = in.read<std::uint16_t>("end of directory: entries");
        record.bytes = in.read<std::uint32_t>("end of directory: bytes");
        record.offset = in.read<std::uint32_t>("end of directory: offset");
        return record;
    }

    Record read_end64(std::uint64_t begin) const {
        ByteReader in = at(begin);
        constexpr const char* signature = "zip64 end of directory: signature";
        const auto found = in.read<std::uint32_t>(signature);
        if (found != end64_signature) {
            in.fail_read(signature, found, std::to_string(end64_signature));
        }
        in.take(8 + 2 + 2, "zip64 end of directory: versions");
        Record record;
        record.disk = in.read<std::uint32_t>("zip64 end of directory: disk");
        record.directory_disk = in.read<std::uint32_t>("zip64 end of directory: directory disk");
        record.entries_here = in.read<std::uint64_t>("zip64 end of directory: entries here");
        record.entries = in.read<std::uint64_t>("zip64 end of directory: entries");
        record.bytes = in.read<std::uint64_t>("zip64 end of directory: bytes");
        record.offset = in.read<std::uint64_t>("zip64 end of directory: offset");
        return record;
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

}  // namespace

ZipEnd read_zip_end(std::span<const std::byte> file, const std::string& file_name) {
    return EndReader(file, file_name).read();
}

}  // namespace tensorpool::files
