// An encoding is a header, one word for each plane, the planes as they are stored, and the bytes
// behind the last whole element.

#include "rest/pieces/piece_codec.hpp"

#include <cmath>

#include "rest/pieces/planes.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tensorpool::stashing {
namespace {

struct Efforts {
    std::array<Effort, max_planes> of_plane = {};
    /// The part of the piece's bytes that remains, by the sample.
    double ratio = 1;
};

constexpr std::size_t chunks = 4;
/// The most bytes of a sample. One of several planes needs fewer: it has fewer kinds of bytes.
constexpr std::size_t max_sample_bytes = 8192;
constexpr std::size_t sample_bytes_of_planes = 4096;

/// Decoding costs in nanoseconds for each byte of a plane, and what 1.5 GB/s leaves for all planes
/// beside merging and the checksum: perf/results/stash.md.
constexpr double few_symbols_ns = 0.45;
constexpr double many_symbols_ns = 0.85;
constexpr double lz4_ns = 0.4;
constexpr double budget_ns = 0.5;
/// Up to this entropy, most look-ups of zstd's Huffman decoder yield two bytes.
constexpr double few_symbols_bits = 4.5;
/// Where LZ4 leaves at most this part, zstd's search saves as much again and decodes fast, because
/// its matches are long.
constexpr double repetitive = 0.25;
constexpr double worth_it = 0.97;

/// What a sample says about a plane: the parts that remain, from 0 to 1.
struct Prospects {
    double entropy = 1;
    double lz4 = 1;
};

using Sample = std::array<std::byte, max_sample_bytes>;

/// Copies chunks at equal distances, which have `sample_bytes` bytes, and returns their bytes.
std::size_t take_sample(const std::byte* plane, std::size_t count, std::size_t sample_bytes,
                        Sample& sample) noexcept {
    if (count <= sample_bytes) {
        std::memcpy(sample.data(), plane, count);
        return count;
    }
    const std::size_t chunk_bytes = sample_bytes / chunks;
    const std::size_t distance = (count - chunk_bytes) / (chunks - 1);
    for (std::size_t i = 0; i < chunks; ++i)
        std::memcpy(sample.data() + i * chunk_bytes, plane + i * distance, chunk_bytes);
    return sample_bytes;
}

/// Returns the entropy of the bytes as a part of 8 bits.
double entropy_of(const std::byte* bytes, std::size_t count) noexcept {
    // Equal bytes that follow one another would wait for each other in one table.
    std::array<std::array<std::uint16_t, 256>, 4> frequency = {};
    for (std::size_t i = 0; i < count; ++i)
        ++frequency[i % frequency.size()][static_cast<std::uint8_t>(bytes[i])];
    float sum = 0;
    for (std::size_t i = 0; i < 256; ++i) {
        const auto times = static_cast<float>(frequency[0][i] + frequency[1][i] + frequency[2][i] +
                                              frequency[3][i]);
        if (times > 1) sum += times * std::log2(times);
    }
    const auto total = static_cast<double>(count);
    return (std::log2(total) - sum / total) / 8;
}

bool has_few_symbols(const Prospects& found) noexcept {
    return found.entropy * 8 <= few_symbols_bits;
}

Prospects prospects_of(const std::byte* plane, std::size_t count, std::size_t sample_bytes,
                       void* lz4_state) noexcept {
    Sample sample;
    const std::size_t taken = take_sample(plane, count, sample_bytes, sample);
    Prospects found;
    found.entropy = entropy_of(sample.data(), taken);
    // Few symbols are always cheap enough for an entropy coder, so LZ4 only matters, and need only
    // go on, while it saves more.
    const double most = has_few_symbols(found) ? std::max(found.entropy, repetitive) : 1;
    std::array<char, max_sample_bytes> out;
    const int bytes = LZ4_compress_fast_extState(
        lz4_state, reinterpret_cast<const char*>(sample.data()), out.data(),
        static_cast<int>(taken), static_cast<int>(std::ceil(most * static_cast<double>(taken))), 1);
    if (bytes > 0) found.lz4 = static_cast<double>(bytes) / static_cast<double>(taken);
    return found;
}

struct Choice {
    Effort effort;
    double remains;
    double cost_ns;
};

Choice choose(const Prospects& found) noexcept {
    if (found.lz4 <= repetitive) return {Effort::matches, found.lz4, lz4_ns};
    if (std::min(found.lz4, found.entropy) > worth_it) return {Effort::raw, 1, 0};
    if (found.lz4 <= found.entropy) return {Effort::lz4, found.lz4, lz4_ns};
    return {Effort::entropy, found.entropy,
            has_few_symbols(found) ? few_symbols_ns : many_symbols_ns};
}

/// Chooses the efforts for `width` planes of `count` bytes that lie one after another, by a sample
/// of each. Codings that restore slowly are chosen for as many planes as the time of a restore at
/// 1.5 GB/s allows, those that save the most first. REQUIRES: `count` is at least 1.
Efforts choose_efforts(const std::byte* planes, std::size_t count, std::size_t width,
                       void* lz4_state) noexcept {
    std::array<Prospects, max_planes> found;
    std::array<Choice, max_planes> choices;
    std::array<std::size_t, max_planes> order;
    const std::size_t sample_bytes = width == 1 ? max_sample_bytes : sample_bytes_of_planes;
    for (std::size_t i = 0; i < width; ++i) {
        found[i] = prospects_of(planes + i * count, count, sample_bytes, lz4_state);
        choices[i] = choose(found[i]);
        order[i] = i;
    }
    std::ranges::sort(std::span(order).first(width), {},
                      [&](std::size_t i) { return choices[i].remains; });

    Efforts efforts;
    double left_ns = budget_ns * static_cast<double>(width);
    double remains = 0;
    for (std::size_t i = 0; i < width; ++i) {
        Choice choice = choices[order[i]];
        if (choice.cost_ns > left_ns && found[order[i]].lz4 <= worth_it)
            choice = {Effort::lz4, found[order[i]].lz4, lz4_ns};
        if (choice.cost_ns > left_ns) choice = {Effort::raw, 1, 0};
        efforts.of_plane[order[i]] = choice.effort;
        left_ns -= choice.cost_ns;
        remains += choice.remains;
    }
    efforts.ratio = remains / static_cast<double>(width);
    return efforts;
}

/// Returns the part that would remain of `width` planes if the bytes of each were coded by their
/// frequencies, by a sample. This takes a fraction of the time of `choose_efforts`.
double estimate_entropy(const std::byte* planes, std::size_t count, std::size_t width) noexcept {
    Sample sample;
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i)
        sum += entropy_of(sample.data(),
                          take_sample(planes + i * count, count, sample_bytes_of_planes, sample));
    return sum / static_cast<double>(width);
}

struct Header {
    std::uint64_t checksum;  // XXH3 of the piece
    std::uint32_t piece_bytes;
    std::uint8_t width;
    std::uint8_t is_rotated;
    std::uint16_t unused;
};
static_assert(sizeof(Header) == 16);

using PlaneWord = std::uint32_t;
constexpr unsigned coding_shift = 28;
/// Where LZ4 leaves at most this part of a sample, zstd is tried first.
constexpr double worth_a_search = 0.5;
constexpr PlaneWord bytes_mask = (PlaneWord{1} << coding_shift) - 1;
static_assert(max_piece_bytes <= bytes_mask);

std::uint64_t checksum_of(std::span<const std::byte> piece) noexcept {
    return XXH3_64bits(piece.data(), piece.size());
}

/// Takes the front of an encoding. Once it has run short, it stays so.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

    template <class Value>
    Value take() noexcept {
        Value value = {};
        const std::span<const std::byte> bytes = take(sizeof(Value));
        if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(Value));
        return value;
    }
    std::span<const std::byte> take(std::size_t bytes) noexcept {
        if (bytes > left_.size()) {
            is_short_ = true;
            return {};
        }
        const std::span<const std::byte> taken = left_.first(bytes);
        left_ = left_.subspan(bytes);
        return taken;
    }
    bool is_short() const noexcept { return is_short_; }
    bool is_used_up() const noexcept { return !is_short_ && left_.empty(); }

private:
    std::span<const std::byte> left_;
    bool is_short_ = false;
};

bool is_valid(const Header& header, std::size_t piece_bytes) noexcept {
    const bool has_width =
        header.width == 1 || header.width == 2 || header.width == 4 || header.width == 8;
    return has_width && header.is_rotated <= 1 && header.piece_bytes == piece_bytes &&
           header.unused == 0;
}

/// Decodes the planes that do not lie in the encoding as they are.
bool take_planes(Reader& in, const ElementLayout& layout, std::size_t count,
                 std::span<std::byte> room, PlanePointers& planes,
                 PieceWorkspace& workspace) noexcept {
    std::array<PlaneWord, max_planes> words = {};
    for (std::size_t i = 0; i < layout.width; ++i) words[i] = in.take<PlaneWord>();
    for (std::size_t i = 0; i < layout.width; ++i) {
        const PlaneWord coding = words[i] >> coding_shift;
        const std::span<const std::byte> encoded = in.take(words[i] & bytes_mask);
        if (in.is_short() || coding > static_cast<PlaneWord>(Coding::zstd)) return false;
        planes[i] = encoded.data();
        if (static_cast<Coding>(coding) == Coding::raw && layout.width != 1) {
            if (encoded.size() != count) return false;
            continue;
        }
        const std::span<std::byte> plane = room.subspan(i * count, count);
        if (!decode_plane(encoded, static_cast<Coding>(coding), plane, workspace)) return false;
        planes[i] = plane.data();
    }
    return true;
}

/// Chooses between one plane and those of the type, by a sample of each.
Efforts choose_layout(std::span<const std::byte> piece, ElementLayout& layout,
                      PieceWorkspace& workspace) noexcept {
    const std::size_t count = piece.size() / layout.width;
    if (count == 0) layout = {};
    const Efforts whole = choose_efforts(piece.data(), piece.size(), 1, workspace.lz4_state());
    if (layout.width == 1) return whole;
    split_planes(piece.data(), count, layout, workspace.planes().data());
    // Elements that repeat, such as those of pictures, seldom do better divided.
    if (whole.ratio <= worth_a_search &&
        whole.ratio < estimate_entropy(workspace.planes().data(), count, layout.width)) {
        layout = {};
        return whole;
    }
    const Efforts divided =
        choose_efforts(workspace.planes().data(), count, layout.width, workspace.lz4_state());
    if (divided.ratio <= whole.ratio) return divided;
    layout = {};
    return whole;
}

/// Writes an encoding: the header, the words of the planes, the planes, the rest.
class Writer {
public:
    Writer(std::span<const std::byte> piece, const ElementLayout& layout,
           std::span<std::byte> out) noexcept
        : piece_(piece),
          layout_(layout),
          out_(out.data()),
          next_(words() + layout.width * sizeof(PlaneWord)) {}

    std::byte* next() const noexcept { return next_; }
    void take(std::size_t number, const EncodedPlane& plane) noexcept {
        const auto word = static_cast<PlaneWord>(
            static_cast<PlaneWord>(plane.coding) << coding_shift | plane.bytes);
        std::memcpy(words() + number * sizeof(word), &word, sizeof(word));
        next_ += plane.bytes;
    }
    std::size_t finish() noexcept {
        const std::span<const std::byte> rest = piece_.last(piece_.size() % layout_.width);
        if (!rest.empty()) std::memcpy(next_, rest.data(), rest.size());
        const Header header = {.checksum = checksum_of(piece_),
                               .piece_bytes = static_cast<std::uint32_t>(piece_.size()),
                               .width = layout_.width,
                               .is_rotated = layout_.is_rotated,
                               .unused = 0};
        std::memcpy(out_, &header, sizeof(header));
        return static_cast<std::size_t>(next_ - out_) + rest.size();
    }

private:
    std::byte* words() const noexcept { return out_ + sizeof(Header); }

    std::span<const std::byte> piece_;
    ElementLayout layout_;
    std::byte* out_;
    std::byte* next_;
};

/// Encodes a piece undivided if zstd finds so many repetitions that it takes less than `bytes`
/// bytes and restores fast. A sample finds too few of them in pictures, where they are a row apart.
/// Returns the bytes of the encoding; 0 if it wrote nothing.
std::size_t encode_repetitions(std::span<const std::byte> piece, std::size_t bytes,
                               std::span<std::byte> out, PieceWorkspace& workspace) noexcept {
    constexpr std::size_t before_plane = sizeof(Header) + sizeof(PlaneWord);
    const std::size_t most = std::min(piece.size() / 4, bytes - std::min(bytes, before_plane));
    std::byte* const room = workspace.planes().data();
    const EncodedPlane plane = encode_plane(piece, Effort::fast_matches, room, workspace);
    if (plane.coding != Coding::zstd || plane.bytes > most) return 0;
    Writer writer(piece, {}, out);
    std::memcpy(writer.next(), room, plane.bytes);
    writer.take(0, plane);
    return writer.finish();
}

/// Returns whether zstd finds so many repetitions in a part of a piece that a search of the whole
/// piece is worth its time.
bool repeats(std::span<const std::byte> part, PieceWorkspace& workspace) noexcept {
    if (part.size() < 2) return false;
    const EncodedPlane plane =
        encode_plane(part, Effort::fast_matches, workspace.planes().data(), workspace);
    return plane.bytes <= part.size() / 8 * 3;
}

}  // namespace

std::size_t max_encoded_bytes(std::size_t piece_bytes) noexcept {
    return sizeof(Header) + max_planes * sizeof(PlaneWord) + piece_bytes;
}

std::size_t encode_piece(std::span<const std::byte> piece, const DataType& type,
                         std::span<std::byte> out, PieceWorkspace& workspace) noexcept {
    ElementLayout layout = layout_of(type);
    const Efforts efforts = choose_layout(piece, layout, workspace);
    const std::size_t count = piece.size() / layout.width;
    const std::byte* const planes = layout.width == 1 ? piece.data() : workspace.planes().data();
    const bool is_repetitive =
        layout.width == 1 && efforts.of_plane[0] == Effort::lz4 && efforts.ratio <= worth_a_search;
    if (is_repetitive) {
        const std::size_t bytes = encode_repetitions(piece, piece.size(), out, workspace);
        if (bytes != 0) return bytes;
    }

    Writer writer(piece, layout, out);
    for (std::size_t i = 0; i < layout.width; ++i) {
        writer.take(i, encode_plane({planes + i * count, count}, efforts.of_plane[i], writer.next(),
                                    workspace));
    }
    const std::size_t bytes = writer.finish();
    if (is_repetitive || bytes > piece.size() / 2) return bytes;
    if (efforts.of_plane[0] == Effort::matches && layout.width == 1) return bytes;
    if (!repeats(piece.first(piece.size() / 4), workspace)) return bytes;
    const std::size_t fewer = encode_repetitions(piece, bytes, out, workspace);
    return fewer != 0 ? fewer : bytes;
}

bool decode_piece(std::span<const std::byte> encoded, std::span<std::byte> piece,
                  PieceWorkspace& workspace) noexcept {
    Reader in(encoded);
    const auto header = in.take<Header>();
    if (!is_valid(header, piece.size()) || piece.size() > workspace.piece_bytes()) return false;
    const ElementLayout layout = {header.width, header.is_rotated != 0};
    const std::size_t count = piece.size() / layout.width;
    if (count == 0) return false;

    PlanePointers planes = {};
    const std::span<std::byte> room = layout.width == 1 ? piece : workspace.planes();
    if (!take_planes(in, layout, count, room, planes, workspace)) return false;
    if (layout.width != 1) merge_planes(planes, count, layout, piece.data());
    const std::span<std::byte> rest = piece.subspan(count * layout.width);
    const std::span<const std::byte> stored = in.take(rest.size());
    if (!in.is_used_up()) return false;
    if (!rest.empty()) std::memcpy(rest.data(), stored.data(), rest.size());
    return checksum_of(piece) == header.checksum;
}

}  // namespace tensorpool::stashing
