#include "platform/unwind/frame.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>

namespace tensorpool::platform::unwind {
namespace {

// Encodings of addresses: a form, and what it is relative to.
constexpr std::uint8_t form_bits = 0x0F;
constexpr std::uint8_t relative_bits = 0x70;
constexpr std::uint8_t relative_to_itself = 0x10;
constexpr std::uint8_t relative_to_table = 0x30;
constexpr std::uint8_t signed_4_bytes = 0x0B;
constexpr std::uint8_t sign_bit = 0x08;
// The bytes of the numbers in each form; 0 for forms that have no fixed size.
constexpr std::uint8_t bytes_of_forms[] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8, 0, 0, 0};

/// Takes a number in one of the forms of a fixed size. Returns false for other forms.
bool take_form(TableBytes& bytes, std::uint8_t encoding, std::uint64_t& to) noexcept {
    const std::size_t size = bytes_of_forms[encoding & form_bits];
    if (size == 0) return false;
    to = bytes.take_number(size, (encoding & sign_bit) != 0);
    return !bytes.is_bad();
}

bool take_address(TableBytes& bytes, std::uint8_t encoding, std::uintptr_t& to) noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(bytes.at());
    if (!take_form(bytes, encoding, to)) return false;
    const std::uint8_t relative = encoding & relative_bits;
    if (relative == relative_to_itself) to += here;
    return relative == 0 || relative == relative_to_itself;
}

/// Takes an entry without its length; an empty one if the length is not valid. Lengths of 64 bits
/// are not: they begin with the largest of 32 bits.
TableBytes take_entry(TableBytes bytes) noexcept {
    const auto length = bytes.take<std::uint32_t>();
    const unsigned char* const begin = bytes.skip(length);
    if (begin == nullptr || bytes.is_bad()) return {nullptr, nullptr};
    return {begin, begin + length};
}

/// Reads what precedes the instructions of a group. Returns false if it has an unknown form.
bool read_group(TableBytes bytes, Group& to) noexcept {
    to = {};
    if (bytes.take<std::uint32_t>() != 0) return false;
    const auto version = bytes.take<std::uint8_t>();
    if (version != 1 && version != 3) return false;
    const auto* text = bytes.at();
    while (bytes.take<std::uint8_t>() != 0) {
    }
    to.code_unit = bytes.take_uleb();
    to.data_unit = bytes.take_sleb();
    to.return_register =
        version == 1 ? bytes.take<std::uint8_t>() : static_cast<std::uint8_t>(bytes.take_uleb());
    if (bytes.is_bad()) return false;
    if (*text == 'z') {
        to.has_own_data = true;
        const std::uint64_t length = bytes.take_uleb();
        const unsigned char* const begin = bytes.skip(length);
        if (begin == nullptr) return false;
        TableBytes data(begin, begin + length);
        while (*++text != 0) {
            std::uint64_t unused = 0;
            if (*text == 'R') {
                to.address_encoding = data.take<std::uint8_t>();
            } else if (*text == 'S') {
                to.is_signal_frame = true;
            } else if (*text == 'L') {
                data.skip(1);
            } else if (*text == 'P') {
                const auto encoding = data.take<std::uint8_t>();
                if (!take_form(data, encoding, unused)) return false;
            } else {
                return false;
            }
        }
        if (data.is_bad()) return false;
    } else if (*text != 0) {
        return false;
    }
    to.instructions = bytes;
    return !bytes.is_bad();
}

TableBytes headers_of_program() noexcept {
    const auto* const begin = reinterpret_cast<const unsigned char*>(getauxval(AT_PHDR));
    return {begin, begin + (begin == nullptr ? 0 : getauxval(AT_PHNUM) * sizeof(ElfW(Phdr)))};
}

}  // namespace

LoadedTables::Code LoadedTables::find(std::uintptr_t address, Description& to) noexcept {
    if (!find_file(address)) return Code::unknown;
    const unsigned char* const entry = find_entry(address);
    if (entry != nullptr && describe(entry, address, to)) return Code::described;
    return is_code(address) ? Code::bare : Code::unknown;
}

bool LoadedTables::find_file(std::uintptr_t address) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(file_.dlfo_map_start);
    const auto end = reinterpret_cast<std::uintptr_t>(file_.dlfo_map_end);
    if (address - begin < end - begin) return true;
    if (_dl_find_object(reinterpret_cast<void*>(address), &file_) != 0) return false;
    find_bounds();
    return true;
}

// The kernel maps a program with gaps if there are any between its segments; linkers leave them for
// large pages, and some for no reason. The loader then returns the bounds of one segment, and the
// tables lie in another one. Libraries are mapped without gaps.
void LoadedTables::find_bounds() noexcept {
    begin_ = static_cast<const unsigned char*>(file_.dlfo_map_start);
    end_ = static_cast<const unsigned char*>(file_.dlfo_map_end);
    const auto* const index = static_cast<const unsigned char*>(file_.dlfo_eh_frame);
    if (index == nullptr || (index >= begin_ && index < end_)) return;
    for (TableBytes headers = headers_of_program();;) {
        const auto header = headers.take<ElfW(Phdr)>();
        if (headers.is_bad()) return;
        const auto* const begin =
            reinterpret_cast<const unsigned char*>(file_.dlfo_link_map->l_addr + header.p_vaddr);
        if (header.p_type != PT_LOAD || index < begin || index >= begin + header.p_filesz) continue;
        begin_ = begin;
        end_ = begin + header.p_filesz;
    }
}

// The headers of a file without gaps usually lie at the beginning of its first page.
TableBytes LoadedTables::headers_of_file() const noexcept {
    if (begin_ != file_.dlfo_map_start) return headers_of_program();
    const auto begin = reinterpret_cast<std::uintptr_t>(file_.dlfo_map_start);
    StackMemory memory(0);
    std::uintptr_t unused = 0;
    if (!memory.read(begin, unused)) return {nullptr, nullptr};
    constexpr std::size_t page_bytes = 4096;
    const auto* const page = static_cast<const unsigned char*>(file_.dlfo_map_start);
    ElfW(Ehdr) file;
    std::memcpy(&file, page, sizeof file);
    if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_phoff > page_bytes) {
        return {nullptr, nullptr};
    }
    const std::size_t bytes = file.e_phnum * sizeof(ElfW(Phdr));
    return {page + file.e_phoff, page + std::min(page_bytes, file.e_phoff + bytes)};
}

bool LoadedTables::is_code(std::uintptr_t address) const noexcept {
    for (TableBytes headers = headers_of_file();;) {
        const auto header = headers.take<ElfW(Phdr)>();
        if (headers.is_bad()) return false;
        if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0 &&
            address - file_.dlfo_link_map->l_addr - header.p_vaddr < header.p_memsz) {
            return true;
        }
    }
}

// The index is sorted by the beginnings of the functions.
const unsigned char* LoadedTables::find_entry(std::uintptr_t address) const noexcept {
    const auto* const index = static_cast<const unsigned char*>(file_.dlfo_eh_frame);
    if (index == nullptr) return nullptr;
    TableBytes header = bytes_from(index);
    const auto version = header.take<std::uint8_t>();
    const auto table_encoding = header.take<std::uint8_t>();
    const auto count_encoding = header.take<std::uint8_t>();
    const auto index_encoding = header.take<std::uint8_t>();
    std::uint64_t unused = 0;
    std::uint64_t count = 0;
    if (version != 1 || index_encoding != (relative_to_table | signed_4_bytes) ||
        !take_form(header, table_encoding, unused) || !take_form(header, count_encoding, count)) {
        return nullptr;
    }
    struct Item {
        std::int32_t function;
        std::int32_t entry;
    };
    const unsigned char* const items = header.at();
    if (count > SIZE_MAX / sizeof(Item) || header.skip(count * sizeof(Item)) == nullptr) {
        return nullptr;
    }
    const auto function_at = [items](std::uint64_t i) {
        std::int32_t function = 0;
        std::memcpy(&function, items + i * sizeof(Item), sizeof function);
        return function;
    };
    const auto wanted =
        static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(index));
    // A step without a branch, as its outcome cannot be predicted.
    std::uint64_t first = 0;
    while (count > 1) {
        const std::uint64_t half = count / 2;
        first = function_at(first + half) <= wanted ? first + half : first;
        count -= half;
    }
    if (count == 0 || function_at(first) > wanted) return nullptr;
    std::int32_t entry = 0;
    std::memcpy(&entry, items + first * sizeof(Item) + offsetof(Item, entry), sizeof entry);
    return index + entry;
}

bool LoadedTables::describe(const unsigned char* entry, std::uintptr_t address,
                            Description& to) noexcept {
    TableBytes bytes = take_entry(bytes_from(entry));
    const unsigned char* const begin = bytes.at();
    const auto distance = bytes.take<std::uint32_t>();
    if (bytes.is_bad() || distance == 0) return false;
    if (begin - distance != group_begin_) {
        group_begin_ = nullptr;
        if (!read_group(take_entry(bytes_from(begin - distance)), group_)) return false;
        group_begin_ = begin - distance;
    }
    to.group = group_;
    std::uint64_t length = 0;
    if (!take_address(bytes, group_.address_encoding, to.begin) ||
        !take_form(bytes, group_.address_encoding, length) || address - to.begin >= length) {
        return false;
    }
    if (group_.has_own_data) bytes.skip(bytes.take_uleb());
    to.instructions = bytes;
    return !bytes.is_bad();
}

}  // namespace tensorpool::platform::unwind
