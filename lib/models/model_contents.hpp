#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory_resource>
#include <numeric>
#include <tuple>
#include <utility>

#include <boost/endian/conversion.hpp>
#include <boost/locale/utf.hpp>

#include <tensorpool/model_file.hpp>

#include "tensors/tensor_sizes.hpp"

namespace tensorpool::files {

inline std::uint8_t byte_at(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint8_t>(text[at]);
}

inline constexpr std::size_t cut_bytes = 80;

inline bool is_ascii(std::string_view text) noexcept {
    std::uint64_t high_bits = 0;
    while (text.size() >= sizeof high_bits) {
        std::uint64_t eight;
        std::memcpy(&eight, text.data(), sizeof eight);
        high_bits |= eight;
        text.remove_prefix(sizeof eight);
    }
    std::uint8_t rest = 0;
    for (const char byte : text) rest |= static_cast<std::uint8_t>(byte);
    return (high_bits & 0x8080808080808080U) == 0 && rest < 0x80;
}

/// Returns the bytes of the character that begins here; 0 if none does.
inline std::size_t character_bytes(std::string_view text) noexcept {
    const char* end = text.data();
    const auto character =
        boost::locale::utf::utf_traits<char>::decode(end, text.data() + text.size());
    const bool is_valid = boost::locale::utf::is_valid_codepoint(character);
    return is_valid ? static_cast<std::size_t>(end - text.data()) : 0;
}

/// Returns whether a terminal may interpret the character: those below a space, and U+0080 to
/// U+009F, one of which begins escape sequences.
inline bool is_control(std::string_view character) noexcept {
    const std::uint8_t first = byte_at(character, 0);
    return first < 0x20 || first == 0x7f || (first == 0xc2 && byte_at(character, 1) < 0xa0);
}

inline std::string escaped(std::string_view bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::uint8_t byte = byte_at(bytes, i);
        text += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

/// Returns whether `text` is strict UTF-8: no overlong forms, no surrogates, nothing above
/// U+10FFFF.
inline bool is_utf8(std::string_view text) noexcept {
    if (is_ascii(text)) return true;
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

/// Returns `text` in single quotes, for errors. Control characters and bytes that are not UTF-8 are
/// escaped, since files may be hostile, and the text is cut to about 80 bytes.
inline std::string in_quotes(std::string_view text) {
    std::string to = "'";
    while (!text.empty() && to.size() < cut_bytes) {
        const std::size_t bytes = character_bytes(text);
        const std::string_view next = text.substr(0, bytes == 0 ? 1 : bytes);
        to += bytes == 0 || is_control(next) ? escaped(next) : std::string(next);
        text.remove_prefix(next.size());
    }
    return to + (text.empty() ? "'" : "…'");
}

/// The name of a field in errors: "offset", or with a number, "dimension 2", or with a prefix,
/// "local size".
struct Field {
    Field(const char* field_name) noexcept : name(field_name) {}
    Field(const char* field_name, std::uint64_t field_number) noexcept
        : name(field_name), number(field_number), numbered(true) {}

    Field(const char* field_prefix, const char* field_name) noexcept
        : name(field_name), prefix(field_prefix) {}

    const char* name;
    const char* prefix = "";
    std::uint64_t number = 0;
    bool numbered = false;
};

/// Walks a part of a file that may be hostile: every read is checked against the bytes that are
/// left. Numbers are little-endian. Errors are ModelFileErrors; their text is composed only when
/// they are thrown.
class ByteReader {
public:
    /// Reads the bytes from `begin` to `end` of a file. `file` and `file_name` must outlive the
    /// reader.
    ByteReader(std::span<const std::byte> file, std::uint64_t begin, std::uint64_t end,
               const std::string& file_name) noexcept
        : file_(file), position_(begin), end_(end), file_name_(&file_name) {}
    ByteReader(std::span<const std::byte> file, const std::string& file_name) noexcept
        : ByteReader(file, 0, file.size(), file_name) {}

    /// Returns a reader of other bytes of the file, with the same names in errors.
    ByteReader part(std::uint64_t begin, std::uint64_t end) const noexcept {
        ByteReader other = *this;
        other.position_ = begin;
        other.end_ = end;
        return other;
    }

    /// Names the thing to which the following fields belong: "tensor 3". `call` adds its name once
    /// it is known: "tensor 3 'x'".
    void enter(const char* thing, std::uint64_t index) noexcept {
        thing_ = thing;
        index_ = index;
        named_ = false;
    }
    void call(std::string_view name) noexcept {
        name_ = name;
        named_ = true;
    }
    void leave() noexcept { thing_ = nullptr; }

    std::uint64_t position() const noexcept { return position_; }
    std::uint64_t left() const noexcept { return end_ - position_; }

    template <class Number>
    Number read(Field field) {
        const auto* const bytes =
            reinterpret_cast<const unsigned char*>(take(sizeof(Number), field).data());
        return boost::endian::endian_load<Number, sizeof(Number), boost::endian::order::little>(
            bytes);
    }
    std::span<const std::byte> take(std::uint64_t bytes, Field field) {
        if (bytes > left()) fail_short(field, bytes);
        const auto taken = file_.subspan(position_, bytes);
        position_ += bytes;
        return taken;
    }
    std::string_view take_text(std::uint64_t bytes, Field field) {
        const auto taken = take(bytes, field);
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }
    /// Rejects a count, which has just been read, if so many things of at least `min_bytes` bytes
    /// do not fit into the bytes that are left.
    template <class Number>
    void check_count(Number count, std::uint64_t min_bytes, Field field) const {
        if (count > left() / min_bytes) {
            fail_count(field, position_ - sizeof(Number), count, min_bytes);
        }
    }

    /// Throws an error about a field at byte `offset` of the file.
    [[noreturn]] void fail(Field field, std::uint64_t offset, const std::string& problem) const {
        std::string text;
        if (thing_ != nullptr) {
            text = std::string(thing_) + ' ' + std::to_string(index_);
            if (named_) text += ' ' + in_quotes(name_);
            text += ": ";
        }
        text += std::string(field.prefix) + field.name;
        if (field.numbered) text += ' ' + std::to_string(field.number);
        throw ModelFileError(*file_name_, text, offset, problem);
    }
    /// Throws "found 5, expected …" about a number that has just been read.
    template <class Number>
    [[noreturn]] void fail_read(Field field, Number found, const std::string& expected) const {
        fail(field, position_ - sizeof(Number),
             "found " + std::to_string(found) + ", expected " + expected);
    }

    /// Throws "found the name of tensor 3 again, …" about `thing` number `index`, called `name`.
    /// `what` is its name or key, whose field is at byte `offset`.
    [[noreturn]] void fail_duplicate(const char* thing, std::uint64_t index, std::string_view name,
                                     std::uint64_t first, const char* what, Field field,
                                     std::uint64_t offset) {
        enter(thing, index);
        call(name);
        fail(field, offset,
             "found the " + std::string(what) + " of " + thing + ' ' + std::to_string(first) +
                 " again, expected each " + what + " once");
    }

private:
    [[noreturn]] void fail_short(Field field, std::uint64_t bytes) const {
        fail(field, position_,
             "found " + std::to_string(left()) + " B to the end, expected " +
                 std::to_string(bytes) + " B");
    }
    [[noreturn]] void fail_count(Field field, std::uint64_t offset, std::uint64_t count,
                                 std::uint64_t min_bytes) const {
        fail(field, offset,
             "found " + std::to_string(count) + ", expected at most " +
                 std::to_string(left() / min_bytes) + ": each takes at least " +
                 std::to_string(min_bytes) + " B, and " + std::to_string(left()) + " B are left");
    }

    // position_ <= end_ <= file_.size().
    std::span<const std::byte> file_;
    std::uint64_t position_;
    std::uint64_t end_;
    const std::string* file_name_;
    const char* thing_ = nullptr;
    std::uint64_t index_ = 0;
    std::string_view name_;
    bool named_ = false;
};

/// Returns the numbers of the tensors, ordered by their beginning, then by their end. Returns an
/// empty vector if the tensors are in that order already, as most writers leave them.
inline std::vector<std::uint32_t> order_by_offset(std::span<const ModelTensor> tensors) {
    const auto range = [](const ModelTensor& tensor) {
        return std::tuple(tensor.offset, tensor.bytes);
    };
    if (std::ranges::is_sorted(tensors, {}, range)) return {};
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return range(tensors[i]); });
    return order;
}

/// Calls `visit(number, previous)` for each tensor in the order of their bytes. `previous` is the
/// number of the tensor before it, or its own for the first.
template <class Visit>
void visit_by_offset(std::span<const ModelTensor> tensors, Visit visit) {
    const std::vector<std::uint32_t> order = order_by_offset(tensors);
    const auto number = [&](std::size_t i) { return order.empty() ? i : order[i]; };
    for (std::size_t i = 0; i < tensors.size(); ++i) visit(number(i), number(i == 0 ? 0 : i - 1));
}

/// Finds things by name, and finds duplicate names. Keys are sorted by hash, then by name, so that
/// a file whose names all have the same hash takes no more than O(n log n) comparisons.
class NameIndex {
public:
    /// Two things of the same name, the earlier first.
    struct Duplicates {
        std::size_t first;
        std::size_t second;
    };

    /// Builds the index; `name_of(thing)` returns a name. Returns duplicates, if there are any.
    /// REQUIRES: at most 2^32 - 1 things.
    template <class Thing, class NameOf>
    std::optional<Duplicates> build(std::span<const Thing> things, NameOf name_of) {
        keys_.clear();
        keys_.reserve(things.size());
        for (std::size_t i = 0; i < things.size(); ++i) {
            keys_.push_back(hash_of(name_of(things[i])) | i);
        }
        std::ranges::sort(keys_, [&](std::uint64_t one, std::uint64_t other) {
            if (hash_part(one) != hash_part(other)) return one < other;
            const auto order =
                name_of(things[index_part(one)]).compare(name_of(things[index_part(other)]));
            return order != 0 ? order < 0 : one < other;
        });
        for (std::size_t i = 1; i < keys_.size(); ++i) {
            if (hash_part(keys_[i - 1]) != hash_part(keys_[i])) continue;
            const Duplicates duplicates = {index_part(keys_[i - 1]), index_part(keys_[i])};
            if (name_of(things[duplicates.first]) == name_of(things[duplicates.second]))
                return duplicates;
        }
        return std::nullopt;
    }

    /// Returns the thing of that name among those that the index was built from; nullptr if there
    /// is none.
    template <class Thing, class NameOf>
    const Thing* find(std::span<const Thing> things, NameOf name_of,
                      std::string_view name) const noexcept {
        const std::uint64_t hash = hash_of(name);
        const auto at = std::ranges::partition_point(keys_, [&](std::uint64_t key) {
            if (hash_part(key) != hash) return key < hash;
            return name_of(things[index_part(key)]) < name;
        });
        if (at == keys_.end()) return nullptr;
        const Thing& thing = things[index_part(*at)];
        return name_of(thing) == name ? &thing : nullptr;
    }

private:
    static std::uint64_t hash_of(std::string_view name) noexcept {
        return hash_part(std::hash<std::string_view>()(name));
    }
    static std::uint64_t hash_part(std::uint64_t key) noexcept { return key & ~0xffffffffULL; }
    static std::size_t index_part(std::uint64_t key) noexcept { return key & 0xffffffff; }

    // The upper half is a hash, the lower half the number of the thing.
    std::vector<std::uint64_t> keys_;
};

/// More than any library that writes these files allows (NumPy and PyTorch allow 64).
inline constexpr std::size_t max_dimensions = 64;

/// The shapes of many tensors in a few pieces of memory. Shapes that were added never move.
class Shapes {
public:
    std::span<const std::uint64_t> add(std::span<const std::uint64_t> shape) {
        void* const memory = memory_->allocate(shape.size_bytes(), alignof(std::uint64_t));
        auto* const copy = static_cast<std::uint64_t*>(memory);
        std::ranges::copy(shape, copy);
        return {copy, shape.size()};
    }

private:
    using Memory = std::pmr::monotonic_buffer_resource;
    std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

/// Returns the bytes of a tensor. Errors, about `what` in a field at byte `offset`, are reported
/// through `in`.
inline std::uint64_t tensor_bytes(const ByteReader& in, std::span<const std::uint64_t> shape,
                                  const DataType& type, Field field, std::uint64_t offset,
                                  const std::string& what) {
    const auto elements = tensors::count_elements(shape);
    const auto bytes = elements ? tensors::count_bytes(*elements, type) : std::nullopt;
    if (bytes) return *bytes;
    in.fail(
        field, offset,
        "found " + what + " whose product passes 2^63 - 1, in elements or in bytes; expected less");
}

struct NameOf {
    std::string_view operator()(const ModelTensor& tensor) const noexcept { return tensor.name; }
    std::string_view operator()(const MetadataEntry& entry) const noexcept { return entry.key; }
};

/// The contents of a file, filled in by a reader. Names, keys and values are views into `bytes`;
/// those that had to be decoded lie in `decoded`.
struct ModelContents {
    std::string name;
    std::span<const std::byte> bytes;
    ModelFormat format = ModelFormat::gguf;
    std::uint32_t version = 0;
    std::vector<ModelTensor> tensors;
    Shapes shapes;
    std::vector<MetadataEntry> metadata;
    std::deque<std::string> decoded;
    NameIndex tensors_by_name;
    NameIndex metadata_by_key;

    std::uint64_t offset_of(std::string_view text) const noexcept {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(text.data()) -
                                          bytes.data());
    }
    std::optional<NameIndex::Duplicates> index_tensors() {
        return tensors_by_name.build(std::span<const ModelTensor>(tensors), NameOf());
    }
    std::optional<NameIndex::Duplicates> index_metadata() {
        return metadata_by_key.build(std::span<const MetadataEntry>(metadata), NameOf());
    }
};

/// Readers of one format each. REQUIRES: `to` has `name` and `bytes`, and the bytes begin like a
/// file of that format. They throw ModelFileError.
void read_gguf(ModelContents& to);
void read_safetensors(ModelContents& to);
void read_npy(ModelContents& to);
void read_npz(ModelContents& to);

}  // namespace tensorpool::files
