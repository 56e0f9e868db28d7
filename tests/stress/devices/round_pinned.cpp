#include "stress/devices/round.hpp"
#include "stress/devices/violation.hpp"

// Copies through pinned memory, which is freed while they are pending.

namespace tensorpool::stress::devices {
namespace {

constexpr std::size_t max_copied = std::size_t{128} << 10;

}  // namespace

/// Allocates a block, which the host writes at once, so no earlier user may still need it.
Block* Round::allocate_pinned(Site& site, std::size_t bytes, StreamOf on) {
    const StreamHandle reported = random_.one_in(2) ? on.handle : nullptr;
    void* const address = site.pinned->allocate(bytes, reported);
    stage_.check();
    if (address == nullptr) return nullptr;
    if (reported != nullptr && !contains(site.pinned_streams, on))
        site.pinned_streams.push_back(on);
    auto block = std::make_unique<Block>();
    block->number = next_number_++;
    block->address = address;
    block->requested = bytes;
    block->usable = site.pinned->usable_size(address);
    block->home = {on.device, reported};
    block->word = random_.word();
    stage_.backend().host_write(address, bytes, "the host's first write");
    stage_.check();
    Samples(address, bytes).write(*block->word);
    return &site.pinned_blocks.add(std::move(block));
}

void Round::use_pinned(Site& site, Block& block, StreamOf on) {
    if (block.home.handle != nullptr && on == block.home) return;
    if (random_.one_in(2)) {
        if (!contains(block.unreported, on)) block.unreported.push_back(on);
        return;
    }
    site.pinned->record_use(block.address, on.handle);
    if (!contains(site.pinned_streams, on)) site.pinned_streams.push_back(on);
}

void Round::upload() {
    Site& site = any_site();
    Block* const to = any_block(site);
    if (to == nullptr || to->requested > max_copied) return;
    const StreamOf on = any_stream(device_of(site));
    const bool again = !site.pinned_blocks.empty() && random_.one_in(4);
    Block* const from =
        again ? &site.pinned_blocks.any(random_) : allocate_pinned(site, to->requested, on);
    if (from == nullptr || from->requested != to->requested) return;
    stage_.order_for_write(*to, on);
    stage_.expect_ok(stage_.backend().copy_async(on.device, CopyKind::host_to_device, to->address,
                                                 from->address, to->requested, on.handle),
                     "copy_async to the device");
    to->word = from->word;
    use(site, *to, on);
    use_pinned(site, *from, on);
    if (!random_.one_in(3)) deallocate_pinned(site, *from);
}

void Round::download() {
    Site& site = any_site();
    Block* const from = written_block(site);
    if (from == nullptr || from->requested > max_copied) return;
    const StreamOf on = any_stream(device_of(site));
    Block* const to = allocate_pinned(site, from->requested, on);
    if (to == nullptr) return;
    stage_.order_for_read(*from, on);
    stage_.expect_ok(stage_.backend().copy_async(on.device, CopyKind::device_to_host, to->address,
                                                 from->address, from->requested, on.handle),
                     "copy_async to the host");
    use(site, *from, on);
    use_pinned(site, *to, on);
    if (random_.one_in(2)) {
        stage_.wait_for(on);
        stage_.backend().host_read(to->address, to->requested, "the host's read of a copy");
        if (!Samples(to->address, to->requested).hold(*from->word)) {
            stage_.found("the host read wrong content in a copy of block " +
                         std::to_string(from->number));
        }
    }
    deallocate_pinned(site, *to);
}

void Round::deallocate_pinned() {
    Site& site = any_site();
    if (site.pinned_blocks.empty()) return;
    deallocate_pinned(site, site.pinned_blocks.any(random_));
}

void Round::deallocate_pinned(Site& site, Block& block) {
    for (const StreamOf& stream : block.unreported) {
        if (random_.one_in(8)) {
            stage_.wait_for(stream);
            continue;
        }
        site.pinned->record_use(block.address, stream.handle);
        if (!contains(site.pinned_streams, stream)) site.pinned_streams.push_back(stream);
    }
    void* const address = block.address;
    site.pinned_blocks.remove(block);
    site.pinned->deallocate(address);
}

}  // namespace tensorpool::stress::devices
