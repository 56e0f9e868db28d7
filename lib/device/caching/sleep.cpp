#include "device/caching/sleep.hpp"

#include <utility>

#include "base/text.hpp"

namespace tensorpool::device {

using base::BytesText;

std::size_t Sleep::begin(SleepContent content) {
    if (state_.asleep) return 0;
    check_captures();
    if (!reclaim_.wait_for_device()) {
        refuse(DeviceStatus::failed,
               "the wait for the device failed: " + state_.backend.last_error());
    }
    free_.complete();
    free_.flush_all();
    const std::size_t bytes = reclaim_.give_back(Reclaim::Which::all, max_bytes);
    check_captures();  // one may have begun during the wait
    check_slabs();
    try {
        find_pieces();
        if (content == SleepContent::kept) {
            for (Piece& piece : pieces_) save(piece);
        }
    } catch (...) {
        pieces_.clear();
        throw;
    }
    set_asleep(true);
    std::size_t unmapped = 0;
    for (const Piece& piece : pieces_) unmapped += unmap(piece);
    state_.totals.count_give_back(unmapped);
    state_.record.note_capacity();
    state_.watch.write(EntryKind::give_back, unmapped);
    return bytes + unmapped;
}

void Sleep::end() {
    if (!state_.asleep) return;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const DeviceStatus status = map(pieces_[i]);
        if (status == DeviceStatus::ok) {
            bytes += pieces_[i].bytes;
            continue;
        }
        for (std::size_t done = 0; done < i; ++done) unmap(pieces_[done]);
        refuse(status, "no memory for " + std::string(BytesText(pieces_[i].bytes).c_str()) +
                           " of the blocks in use: " + state_.backend.last_error());
    }
    pieces_.clear();
    set_asleep(false);
    state_.totals.count_growth(bytes);
    state_.record.note_capacity();
    state_.watch.write(EntryKind::growth, bytes);
}

void Sleep::set_asleep(bool asleep) noexcept {
    state_.asleep = asleep;
    captures_.set_gate();
}

void Sleep::check_captures() const {
    if (captures_.is_any_active()) refuse(DeviceStatus::in_capture, "a stream is captured");
}

void Sleep::check_slabs() const {
    for (const auto& cache : state_.caches) {
        for (const Slab& slab : cache->memory.slabs) {
            if (slab.is_expandable() || slab.is_all_free()) continue;
            refuse(DeviceStatus::not_supported,
                   std::string(BytesText(slab.held_bytes - slab.free_bytes).c_str()) +
                       (cache->capture() != 0 ? " of a graph's memory are in use"
                                              : " of slabs that cannot grow are in use") +
                       "; expected blocks in expandable slabs only");
        }
    }
}

void Sleep::find_pieces() {
    for (const auto& cache : state_.caches) {
        for (Slab& slab : cache->memory.slabs) {
            if (!slab.is_expandable()) continue;
            const std::size_t count = slab.bytes / slab.granule;
            for (std::size_t i = 0; i < count; ++i) {
                if (slab.granules[i] == nullptr) continue;
                std::byte* const address = slab.base + i * slab.granule;
                if (!pieces_.empty() && pieces_.back().slab == &slab &&
                    pieces_.back().address + pieces_.back().bytes == address) {
                    pieces_.back().bytes += slab.granule;
                } else {
                    pieces_.push_back({&slab, address, slab.granule, nullptr});
                }
            }
        }
    }
}

void Sleep::save(Piece& piece) {
    piece.content = std::make_unique_for_overwrite<std::byte[]>(piece.bytes);
    const DeviceStatus status = state_.backend.copy(
        state_.device, CopyKind::device_to_host, piece.content.get(), piece.address, piece.bytes);
    if (status == DeviceStatus::ok) return;
    refuse(status, "the content could not be copied: " + state_.backend.last_error());
}

/// Unmaps and frees the granules of a piece. One that the device does not unmap stays mapped.
/// Returns the bytes that the device took back.
std::size_t Sleep::unmap(const Piece& piece) noexcept {
    const std::size_t granule = piece.slab->granule;
    std::size_t bytes = 0;
    state_.watch.losing(piece.address, piece.bytes);
    for (std::byte* at = piece.address; at != piece.address + piece.bytes; at += granule) {
        if (state_.backend.unmap_memory(state_.device, at, granule) != DeviceStatus::ok) continue;
        (void)state_.backend.destroy_memory(state_.device,
                                            std::exchange(piece.slab->granule_at(at), nullptr));
        bytes += granule;
    }
    return bytes;
}

/// Maps new memory at the addresses of a piece and copies its content back. On failure nothing new
/// stays mapped.
DeviceStatus Sleep::map(const Piece& piece) {
    const std::size_t granule = piece.slab->granule;
    DeviceStatus status = DeviceStatus::ok;
    for (std::byte* at = piece.address; at != piece.address + piece.bytes; at += granule) {
        MemoryHandle& handle = piece.slab->granule_at(at);
        if (handle != nullptr) continue;  // the device had not unmapped it
        status = state_.backend.create_memory(state_.device, granule, &handle);
        if (status != DeviceStatus::ok) break;
        status = state_.backend.map_memories(state_.device, at, granule, {&handle, 1});
        if (status == DeviceStatus::ok) continue;
        (void)state_.backend.destroy_memory(state_.device, std::exchange(handle, nullptr));
        break;
    }
    if (status == DeviceStatus::ok && piece.content != nullptr) {
        status = state_.backend.copy(state_.device, CopyKind::host_to_device, piece.address,
                                     piece.content.get(), piece.bytes);
    }
    if (status == DeviceStatus::ok) {
        state_.watch.gained(piece.address, piece.bytes);
    } else {
        unmap(piece);
    }
    return status;
}

void Sleep::refuse(DeviceStatus status, const std::string& why) const {
    throw DeviceError(status, "tensorpool: " + state_.options.name + " on " +
                                  to_string(state_.name_of_device()) +
                                  (state_.asleep ? ": wake: " : ": sleep: ") + why);
}

}  // namespace tensorpool::device
