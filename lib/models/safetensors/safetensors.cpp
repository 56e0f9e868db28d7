#include "models/safetensors/tensors.hpp"

/// @file
/// safetensors, as the format's own library (huggingface/safetensors) accepts it.

namespace tensorpool::files {
namespace {

/// The limit of the format's own library.
constexpr std::uint64_t max_header_bytes = 100'000'000;

std::uint64_t read_length(ByteReader& in) {
    constexpr const char* field = "header length";
    const auto bytes = in.read<std::uint64_t>(field);
    if (bytes > max_header_bytes) {
        in.fail_read(field, bytes, "at most " + std::to_string(max_header_bytes) + " B");
    }
    in.check_count(bytes, 1, field);
    return bytes;
}

}  // namespace

void read_safetensors(ModelContents& to) {
    to.format = ModelFormat::safetensors;
    ByteReader in(to.bytes, to.name);
    const std::uint64_t bytes = read_length(in);
    const std::uint64_t begin = in.position();
    const std::string_view header = in.take_text(bytes, "header");
    SafetensorsTensors tensors(to, in.position());
    read_safetensors_header(header, begin, to, tensors);
    tensors.finish();
}

}  // namespace tensorpool::files
