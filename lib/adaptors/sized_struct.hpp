#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tensorpool::adaptors {

/// The largest size that is accepted for a struct of the C interface. These structs begin with
/// their own size and grow at their end, so that a caller may be older or newer than the library.
/// No version is larger than this: a larger value was never set.
inline constexpr std::size_t largest_struct_bytes = 4096;

/// Throws std::invalid_argument unless `bytes` can be the size of a version of the struct.
inline void check_struct_bytes(const char* name, std::size_t bytes,
                               std::size_t first_version_bytes) {
    if (bytes >= first_version_bytes && bytes <= largest_struct_bytes) return;
    throw std::invalid_argument("struct_bytes is " + std::to_string(bytes) +
                                " B, expected sizeof(" + name + "), " +
                                std::to_string(first_version_bytes) + " B in the first version");
}

/// Copies the fields that this version knows into a caller's struct of `bytes` bytes, and sets the
/// rest of it to zero.
template <class Struct>
void copy_out(const Struct& ours, Struct* theirs, std::size_t bytes) {
    std::memcpy(theirs, &ours, std::min(bytes, sizeof ours));
    if (bytes > sizeof ours) {
        std::memset(reinterpret_cast<std::byte*>(theirs) + sizeof ours, 0, bytes - sizeof ours);
    }
}

/// Fills in the first `theirs->struct_bytes` bytes of a caller's struct with what `read` returns.
/// Throws std::invalid_argument, before `read` is called, if the pointer is NULL or the size is not
/// that of any version of the struct.
template <class Struct, class Read>
void fill_in(Struct* theirs, const char* what, const char* name, std::size_t first_version_bytes,
             Read read) {
    if (theirs == nullptr) {
        throw std::invalid_argument(std::string(what) + " is NULL, expected a struct");
    }
    const std::size_t bytes = theirs->struct_bytes;
    check_struct_bytes(name, bytes, first_version_bytes);
    copy_out(read(), theirs, bytes);
    theirs->struct_bytes = bytes;
}

/// Writes defaults into the first `struct_bytes` bytes of a caller's options, and zeros into the
/// fields that this version does not know. Throws std::invalid_argument if the pointer is NULL or
/// the size is not that of any version of the struct.
template <class Options>
void set_options(Options* options, std::size_t struct_bytes, const char* name,
                 std::size_t first_version_bytes, const Options& defaults) {
    if (options == nullptr) throw std::invalid_argument("options is NULL, expected a struct");
    check_struct_bytes(name, struct_bytes, first_version_bytes);
    copy_out(defaults, options, struct_bytes);
    options->struct_bytes = struct_bytes;
}

/// Returns the part of the caller's options that this version knows, and `defaults` for the rest.
/// Throws std::invalid_argument if a field that this version does not know is set.
template <class Options>
Options known_part(const Options& options, const Options& defaults, const char* name,
                   std::size_t first_version_bytes) {
    const std::size_t bytes = options.struct_bytes;
    check_struct_bytes(name, bytes, first_version_bytes);
    Options known = defaults;
    std::memcpy(&known, &options, std::min(bytes, sizeof known));
    if (bytes <= sizeof known) return known;

    const auto* const begin = reinterpret_cast<const unsigned char*>(&options);
    const bool all_zero = std::all_of(begin + sizeof known, begin + bytes,
                                      [](unsigned char byte) { return byte == 0; });
    if (all_zero) return known;
    throw std::invalid_argument("an option beyond the first " + std::to_string(sizeof known) +
                                " B is set, expected none that this older library does not know");
}

/// Converts the value of an enumeration whose values are 0 to `last`. Throws std::invalid_argument,
/// naming the field, for any other value.
template <class Enumeration>
Enumeration to_enumeration(const char* field, std::int32_t value, Enumeration last) {
    if (value >= 0 && value <= static_cast<std::int32_t>(last)) {
        return static_cast<Enumeration>(value);
    }
    throw std::invalid_argument(std::string(field) + " is " + std::to_string(value) +
                                ", expected 0 to " + std::to_string(static_cast<int>(last)));
}

}  // namespace tensorpool::adaptors
