#include "rest/stash_state.hpp"

#include "rest/slab.hpp"

#include "rest/pieces/piece_codec.hpp"

namespace tensorpool::stashing {
namespace {

/// With `by_cost`, content that does not shrink to this part goes to a file: reading it back takes
/// longer than decoding, which must gain memory for it.
constexpr double worth_its_memory = 0.75;

std::size_t count_pieces(std::size_t bytes) noexcept {
    return bytes / default_piece_bytes + (bytes % default_piece_bytes != 0 ? 1 : 0);
}

StashOptions checked(StashOptions options) {
    if (options.method > StashMethod::by_cost) {
        throw std::invalid_argument("tensorpool: stash '" + options.name + "': method is " +
                                    std::to_string(static_cast<unsigned>(options.method)) +
                                    ", expected compress, spill or by_cost");
    }
    if (options.method != StashMethod::compress && options.folder.empty()) {
        throw std::invalid_argument("tensorpool: stash '" + options.name +
                                    "': no folder is given, expected one to spill to");
    }
    return options;
}

}  // namespace

StashState::StashState(std::span<const std::byte> bytes, const Origin& origin, StashOptions options,
                       MemoryPool* work_pool)
    : options_(checked(std::move(options))),
      pool_(options_.pool != nullptr ? *options_.pool : store_pool()),
      work_pool_(work_pool != nullptr ? *work_pool : pool_),
      origin_(origin),
      size_(bytes.size()),
      encoded_bytes_(pool_, count_pieces(bytes.size())) {
    if (is_to_spill(bytes)) store_ = SpillStore::of_folder(options_.folder, options_.name);
    if (!bytes.empty()) encode(bytes);
}

StashState::StashState(const StashState& in_memory)
    : options_(in_memory.options_),
      pool_(in_memory.pool_),
      work_pool_(in_memory.work_pool_),
      origin_(in_memory.origin_),
      size_(in_memory.size_),
      encoded_bytes_(pool_, in_memory.encoded_bytes_.size()),
      store_(SpillStore::of_folder(options_.folder, options_.name)) {
    std::ranges::copy(in_memory.encoded_bytes_, encoded_bytes_.begin());
    slabs_ = copy_to_file(in_memory.slabs_, *store_, options_.name);
}

StashState::~StashState() {
    if (store_ != nullptr) store_->free(slabs_);
}

bool StashState::is_to_spill(std::span<const std::byte> bytes) const {
    if (options_.method != StashMethod::by_cost) return options_.method == StashMethod::spill;
    return estimate_ratio(bytes, options_.type, work_pool_) > worth_its_memory;
}

void StashState::encode(std::span<const std::byte> bytes) {
    PooledWorkspace workspace(work_pool_, std::min(bytes.size(), default_piece_bytes));
    const std::size_t max_bytes = max_encoded_bytes(std::min(bytes.size(), default_piece_bytes));
    SlabWriter writer(pool_, work_pool_, store_.get(),
                      bytes.size() < slab_bytes ? encoded_bytes_.size() * max_bytes : slab_bytes,
                      options_.name);
    // What was encoded before the memory was used up is not encoded again.
    const auto or_in_a_file = [&](auto store) {
        try {
            return store();
        } catch (const AllocationError&) {
            if (options_.method != StashMethod::by_cost || store_ != nullptr) throw;
        }
        store_ = SpillStore::of_folder(options_.folder, options_.name);
        writer.spill_to(*store_);
        return store();
    };
    for (std::size_t i = 0; i < encoded_bytes_.size(); ++i) {
        const std::size_t at = i * default_piece_bytes;
        const auto piece = bytes.subspan(at, std::min(default_piece_bytes, bytes.size() - at));
        const std::span<std::byte> room = or_in_a_file([&] { return writer.room(max_bytes); });
        const std::size_t taken = encode_piece(piece, options_.type, room, workspace.get());
        encoded_bytes_[i] = static_cast<std::uint32_t>(taken);
        writer.take(taken);
    }
    slabs_ = or_in_a_file([&] { return writer.finish(); });
}

void StashState::decode_to(std::span<std::byte> memory) const {
    if (memory.empty()) return;
    PooledWorkspace workspace(work_pool_, std::min(memory.size(), default_piece_bytes));
    // With several slabs, the system reads ahead while one is decoded, which is faster by a fifth.
    // A single slab is read faster without the cache, which would need memory when there is the
    // least.
    const bool is_cached = slabs_.size() > 1 || was_read_ahead_.load(std::memory_order_relaxed);
    const auto from = is_cached ? platform::ReadFrom::page_cache : platform::ReadFrom::disk;
    SlabReader reader(work_pool_, store_.get(), from, slabs_, options_.name);
    std::size_t number = 0;
    for (const Slab& slab : slabs_) {
        std::span<const std::byte> encodings = reader.next();
        for (std::size_t i = 0; i < slab.pieces; ++i, ++number) {
            const std::size_t at = number * default_piece_bytes;
            const auto piece = memory.subspan(at, std::min(default_piece_bytes, size_ - at));
            const std::size_t bytes = encoded_bytes_[number];
            if (bytes > encodings.size() ||
                !decode_piece(encodings.first(bytes), piece, workspace.get())) {
                throw StashError(
                    options_.name, number,
                    "found " + std::to_string(bytes) + " damaged bytes in " +
                        (store_ == nullptr ? "memory" : "the file in " + options_.folder) +
                        ", expected the encoding of " + std::to_string(piece.size()) +
                        " bytes, from byte " + std::to_string(at) + ", with their checksum");
            }
            encodings = encodings.subspan(bytes);
        }
    }
}

std::unique_ptr<StashState> StashState::copy_in_file() const {
    return std::unique_ptr<StashState>(new StashState(*this));
}

void StashState::read_ahead() const noexcept {
    if (store_ == nullptr) return;
    was_read_ahead_.store(true, std::memory_order_relaxed);
    for (const Slab& slab : slabs_) store_->read_ahead(slab.position, slab.bytes);
}

std::size_t StashState::bytes_in_memory() const noexcept {
    std::size_t bytes = 0;
    for (const Slab& slab : slabs_)
        if (slab.memory) bytes += pool_.usable_size(slab.memory.get());
    const void* const table = encoded_bytes_.data();
    return table == nullptr ? bytes : bytes + pool_.usable_size(table);
}

std::size_t StashState::bytes_in_file() const noexcept {
    std::size_t bytes = 0;
    for (const Slab& slab : slabs_)
        if (!slab.memory) bytes += slab.bytes;
    return bytes;
}

namespace {

constexpr std::size_t max_samples = 4;
/// Smaller than the pieces of a stash: tensors of 1 MiB would take a fourth longer to encode.
constexpr std::size_t max_sample_bytes = default_piece_bytes / 4;

}  // namespace

double estimate_ratio(std::span<const std::byte> bytes, const DataType& type, MemoryPool& pool) {
    if (bytes.empty()) return 0;
    const std::size_t piece_bytes = std::min(bytes.size(), max_sample_bytes);
    PooledWorkspace workspace(pool, piece_bytes);
    const PooledAllocation out(pool, max_encoded_bytes(piece_bytes));
    // Whole pieces, which begin with whole elements, from the first to the last.
    const std::size_t pieces = bytes.size() / piece_bytes;
    const std::size_t samples = std::min(max_samples, pieces);
    std::size_t encoded = 0;
    for (std::size_t i = 0; i < samples; ++i) {
        const std::size_t number = samples == 1 ? 0 : i * (pieces - 1) / (samples - 1);
        encoded += encode_piece(bytes.subspan(number * piece_bytes, piece_bytes), type,
                                out.as<std::byte>(), workspace.get());
    }
    return static_cast<double>(encoded) / static_cast<double>(samples * piece_bytes);
}

}  // namespace tensorpool::stashing
