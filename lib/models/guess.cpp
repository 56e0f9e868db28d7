#include <tensorpool/model_file.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace tensorpool {
namespace {

bool begins(std::span<const std::byte> bytes, std::string_view with) noexcept {
    const auto expected = std::as_bytes(std::span(with));
    return bytes.size() >= with.size() && std::ranges::equal(bytes.first(with.size()), expected);
}

/// Returns whether the bytes begin with a plausible header length and the header's first character.
bool begins_with_header(std::span<const std::byte> bytes) noexcept {
    constexpr std::size_t length_bytes = 8;
    return bytes.size() > length_bytes && bytes[6] == std::byte{0} && bytes[7] == std::byte{0} &&
           bytes[length_bytes] == std::byte{'{'};
}

}  // namespace

ModelGuess guess_model_format(std::span<const std::byte> first_bytes) noexcept {
    if (begins(first_bytes, "GGUF")) return ModelGuess::gguf;
    if (begins(first_bytes, "\x93NUMPY")) return ModelGuess::npy;
    // The signature of an entry, or of an archive without entries.
    if (begins(first_bytes, "PK\x03\x04") || begins(first_bytes, "PK\x05\x06")) {
        return ModelGuess::zip;
    }
    return begins_with_header(first_bytes) ? ModelGuess::safetensors : ModelGuess::none;
}

const char* to_string(ModelFormat format) noexcept {
    static constexpr std::array<const char*, 4> names = {"GGUF", "safetensors", "npy", "npz"};
    return names[static_cast<std::size_t>(format)];
}

}  // namespace tensorpool
