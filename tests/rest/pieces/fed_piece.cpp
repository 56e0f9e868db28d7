#include "rest/pieces/fed_piece.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "platform/platform.hpp"
#include "rest/pieces/piece_codec.hpp"
#include "rest/pieces/planes.hpp"

namespace tensorpool::stashing::testing {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t max_bytes = default_piece_bytes;
// The header of an encoding: checksum, size of the piece, width, rotation, two unused bytes.
constexpr std::size_t header_bytes = 16;
constexpr std::uint32_t plane_bytes_mask = 0x0FFF'FFFF;

constexpr DataType types[] = {
    DataType(),
    DataType::of<std::uint16_t>(),
    DataType::of<std::int32_t>(),
    DataType::of<std::int64_t>(),
    DataType::of<float>(),
    DataType::of<double>(),
    {.code = DataCode::floating, .bits = 16},
    {.code = DataCode::bfloat, .bits = 16},
};

void require(bool kept, const char* promise) {
    if (!kept) throw std::logic_error(promise);
}

/// Memory between two inaccessible pages.
class Room {
public:
    explicit Room(std::size_t bytes) : bytes_(platform::whole_pages(bytes)) {
        const std::size_t page = platform::page_bytes();
        auto* const memory =
            static_cast<std::byte*>(platform::map(bytes_ + 2 * page, platform::page_bytes()));
        require(memory != nullptr, "the test has memory");
        begin_ = memory + page;
        require(platform::make_inaccessible(memory, page), "a page becomes inaccessible");
        require(platform::make_inaccessible(begin_ + bytes_, page), "a page becomes inaccessible");
    }
    /// Returns memory that ends at the inaccessible page behind, or begins at the one before.
    std::span<std::byte> take(std::size_t bytes, bool at_end = true) const {
        return {at_end ? begin_ + bytes_ - bytes : begin_, bytes};
    }

private:
    std::size_t bytes_;
    std::byte* begin_;
};

/// The codec, with all that it is given in rooms.
class Codec {
public:
    Codec()
        : workspace_memory_(PieceWorkspace::bytes_for(max_bytes)),
          workspace_(workspace_memory_.take(PieceWorkspace::bytes_for(max_bytes)), max_bytes) {}

    Bytes encode(const Bytes& piece, const DataType& type, bool at_end) {
        const std::span<std::byte> in = piece_.take(piece.size(), at_end);
        std::ranges::copy(piece, in.begin());
        const std::span<std::byte> out = encoded_.take(max_encoded_bytes(piece.size()), at_end);
        const std::size_t bytes = encode_piece(in, type, out, workspace_);
        require(bytes <= out.size(), "an encoding is no longer than the most");
        require(std::ranges::equal(in, piece), "the piece stays");
        return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
    }
    /// Decodes into memory full of `fill`. Returns false if the codec does; `piece` is then what it
    /// left.
    bool decode(const Bytes& encoded, Bytes& piece, std::byte fill, bool at_end) {
        const std::span<std::byte> in = encoded_.take(encoded.size(), at_end);
        std::ranges::copy(encoded, in.begin());
        const std::span<std::byte> out = piece_.take(piece.size(), at_end);
        std::ranges::fill(out, fill);
        const bool is_decoded = decode_piece(in, out, workspace_);
        require(std::ranges::equal(in, encoded), "the encoding stays");
        std::ranges::copy(out, piece.begin());
        return is_decoded;
    }

private:
    Room workspace_memory_;
    Room piece_{max_bytes};
    Room encoded_{2 * max_bytes};
    PieceWorkspace workspace_;
};

Codec& codec() {
    static Codec one;
    return one;
}

/// What the first bytes of an input select.
struct Plan {
    std::uint8_t kind;  // an encoding, a corrected one, a piece
    bool at_end;
    const DataType& type;
    std::uint16_t number;
    std::size_t repetitions;
};
constexpr std::size_t plan_bytes = 5;

Plan plan_from(std::span<const std::byte> bytes) {
    const auto value = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
    return {.kind = static_cast<std::uint8_t>(value(0) % 4 % 3),
            .at_end = value(0) / 4 % 2 == 0,
            .type = types[value(1) % std::size(types)],
            .number = static_cast<std::uint16_t>(value(2) | value(3) << 8),
            .repetitions = 1 + value(4) % 32};
}

template <class Value>
Value value_at(const Bytes& bytes, std::size_t at) {
    Value value;
    std::memcpy(&value, &bytes[at], sizeof value);
    return value;
}

template <class Value>
void put(Bytes& bytes, std::size_t at, Value value) {
    std::memcpy(&bytes[at], &value, sizeof value);
}

/// Corrects the header but for the checksum, and the sizes of the planes, of which the last takes
/// all bytes that are left but those behind the last whole element.
void correct(Bytes& encoded, const ElementLayout& layout, std::size_t piece_bytes) {
    const std::size_t begin = header_bytes + layout.width * sizeof(std::uint32_t);
    encoded.resize(std::max(encoded.size(), begin + piece_bytes % layout.width));
    put(encoded, 8, static_cast<std::uint32_t>(piece_bytes));
    put(encoded, 12, layout.width);
    put(encoded, 13, static_cast<std::uint8_t>(layout.is_rotated));
    put(encoded, 14, std::uint16_t{0});
    std::size_t left = encoded.size() - begin - piece_bytes % layout.width;
    for (std::size_t i = 0; i < layout.width; ++i) {
        const std::size_t at = header_bytes + i * sizeof(std::uint32_t);
        const auto word = value_at<std::uint32_t>(encoded, at);
        const std::size_t bytes =
            i + 1U == layout.width ? left : (word & plane_bytes_mask) % (left + 1);
        const std::uint32_t coding = word >> 28 & 3;
        put(encoded, at, coding << 28 | static_cast<std::uint32_t>(bytes));
        left -= bytes;
    }
}

bool feed_encoding(Bytes encoded, const Plan& plan) {
    Bytes piece(1 + plan.number % max_bytes);
    if (plan.kind == 1) {
        correct(encoded, layout_of(plan.type), piece.size());
        (void)codec().decode(encoded, piece, std::byte{0x5A}, plan.at_end);
        put(encoded, 0, std::uint64_t{XXH3_64bits(piece.data(), piece.size())});
    }
    if (!codec().decode(encoded, piece, std::byte{0x5A}, plan.at_end)) return false;
    require(value_at<std::uint64_t>(encoded, 0) == XXH3_64bits(piece.data(), piece.size()),
            "what is decoded has the checksum of the encoding");
    require(value_at<std::uint32_t>(encoded, 8) == piece.size(), "it has the size of the encoding");
    Bytes again(piece.size());
    require(codec().decode(encoded, again, std::byte{0xA5}, plan.at_end) && again == piece,
            "each byte of a piece is decoded");
    return true;
}

bool feed_piece(std::span<const std::byte> bytes, const Plan& plan) {
    Bytes piece(std::min(bytes.size() * plan.repetitions, max_bytes));
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = bytes[i % bytes.size()];
    Bytes encoded = codec().encode(piece, plan.type, plan.at_end);
    Bytes back(piece.size());
    require(codec().decode(encoded, back, std::byte{0x5A}, plan.at_end), "an encoding is decoded");
    require(back == piece, "a piece comes back exactly");
    const std::size_t bit = plan.number % (encoded.size() * 8);
    encoded[bit / 8] ^= std::byte{1} << (bit % 8);
    // A frame of zstd has bits that mean nothing: the piece is then right.
    require(!codec().decode(encoded, back, std::byte{0x5A}, plan.at_end) || back == piece,
            "a damaged encoding yields no wrong bytes");
    return true;
}

}  // namespace

bool feed_piece(std::span<const std::byte> bytes) {
    if (bytes.size() <= plan_bytes) return false;
    const Plan plan = plan_from(bytes);
    const std::span<const std::byte> rest =
        bytes.subspan(plan_bytes, std::min(bytes.size() - plan_bytes, max_bytes));
    if (plan.kind == 2) return feed_piece(rest, plan);
    return feed_encoding(Bytes(rest.begin(), rest.end()), plan);
}

}  // namespace tensorpool::stashing::testing
