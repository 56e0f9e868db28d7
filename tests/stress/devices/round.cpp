#include "stress/devices/round.hpp"

#include <algorithm>
#include <iterator>

#include "stress/devices/violation.hpp"

namespace tensorpool::stress::devices {
namespace {

// Limits copies and fills, which access every byte and would otherwise take most of the time.
constexpr std::size_t max_copied = std::size_t{128} << 10;
constexpr std::uint64_t steps_per_look = 32;

}  // namespace

Round::Round(std::uint64_t seed, Schedule schedule, const PlantedFault* fault)
    : setting_(setting_of(seed, schedule)),
      checks_statistics_(fault == nullptr),
      random_(~seed),
      stage_(setting_.simulation) {
    for (int device = 0; device < stage_.devices(); ++device) {
        sites_.push_back(std::make_unique<Site>(stage_.backend(), device, setting_, fault));
    }
}

void Round::step() {
    struct Choice {
        std::size_t weight;
        void (Round::*step)();
    };
    static constexpr Choice choices[] = {
        {180, &Round::allocate},
        {170, &Round::deallocate},
        {130, &Round::write},
        {130, &Round::read},
        {30, &Round::fill},
        {30, &Round::copy_to_new},
        {25, &Round::allocate_scalar},
        {40, &Round::upload},
        {40, &Round::download},
        {15, &Round::deallocate_pinned},
        {25, &Round::order},
        {25, &Round::synchronize},
        {10, &Round::call_host_function},
        {4, &Round::trim},
        {4, &Round::end_stream},
        {3, &Round::change_other_processes},
        {6, &Round::change_faults},
        {3, &Round::change_callbacks},
        {6, &Round::capture},
        {25, &Round::launch},
        {4, &Round::destroy_graph},
    };
    static constexpr std::size_t sum = [] {
        std::size_t weights = 0;
        for (const Choice& choice : choices) weights += choice.weight;
        return weights;
    }();
    std::size_t left = random_.below(sum);
    const Choice* chosen = choices;
    for (; left >= chosen->weight; ++chosen) left -= chosen->weight;
    (this->*chosen->step)();
    stage_.check();
    if (++steps_ % steps_per_look == 0) check_statistics();
}

void Round::finish() {
    stage_.backend().set_faults({});
    while (!graphs_.empty()) destroy(graphs_.back());
    for (const auto& site : sites_) {
        while (!site->blocks.empty()) deallocate(*site, *site->blocks.all().back());
        while (!site->pinned_blocks.empty()) {
            deallocate_pinned(*site, *site->pinned_blocks.all().back());
        }
    }
    for (int device = 0; device < stage_.devices(); ++device) {
        stage_.expect_ok(stage_.backend().synchronize_device(device), "synchronize_device");
    }
    stage_.check();
    check_statistics();
    for (const auto& site : sites_) {
        for (Subject* const subject : {site->memory.get(), site->pinned.get()}) {
            (void)subject->trim();
            const DeviceStatistics left = subject->statistics();
            const bool nothing = left.capacity_bytes == 0 && left.deferred_blocks == 0;
            if (nothing || !checks_statistics_) continue;
            throw Violation(std::to_string(left.capacity_bytes) + " B of capacity are left in " +
                            left.name + " on " + left.device + " at the end");
        }
    }
    stage_.check();
    if (host_functions_called_ != host_functions_given_)
        throw Violation("a host function was not called");
}

// Memory of devices ------------------------------------------------------------------------------

void Round::allocate() {
    Site& site = any_site();
    const StreamOf home = any_stream(device_of(site));
    const std::size_t bytes = random_.size(setting_.simulation.memory_bytes / 6);
    Block* const block =
        add_block(site, site.memory->allocate(bytes, home.handle), bytes, home, false);
    if (block != nullptr && !random_.one_in(4)) stage_.write(*block, home, random_.word());
}

void Round::allocate_scalar() try {
    Site& site = any_site();
    const StreamOf home = any_stream(device_of(site));
    const std::size_t bytes = 1 + random_.below(8);
    void* const address = site.caching.allocate_scalar(bytes, home.handle);
    stage_.write(*add_block(site, address, bytes, home, true), home, random_.word());
} catch (const DeviceAllocationError&) {
    return;
}

Block* Round::add_block(Site& site, void* address, std::size_t bytes, StreamOf home, bool scalar) {
    stage_.check();
    if (address == nullptr) return nullptr;
    auto block = std::make_unique<Block>();
    block->number = next_number_++;
    block->address = address;
    block->requested = bytes;
    block->usable = site.memory->usable_size(address);
    block->home = home;
    block->scalar = scalar;
    block->users = {home};
    return &site.blocks.add(std::move(block));
}

Block* Round::any_block(Site& site) {
    return site.blocks.empty() ? nullptr : &site.blocks.any(random_);
}

Block* Round::written_block(Site& site) {
    Block* const block = any_block(site);
    return block != nullptr && block->word.has_value() ? block : nullptr;
}

/// Work in a stream uses the block: reports it to the allocator now, or later, or never.
void Round::use(Site& site, Block& block, StreamOf on) {
    if (on == block.home || contains(block.reported, on) || contains(block.unreported, on)) return;
    if (on.device != block.home.device || random_.one_in(2)) {
        block.unreported.push_back(on);
    } else {
        site.memory->record_use(block.address, on.handle);
        block.reported.push_back(on);
    }
}

void Round::deallocate() {
    Site& site = any_site();
    Block* const block = any_block(site);
    if (block != nullptr && is_free_to_go(*block)) deallocate(site, *block);
}

void Round::deallocate(Site& site, Block& block) {
    for (const StreamOf& stream : block.unreported) {
        if (stream.device == block.home.device && random_.one_in(2)) {
            site.memory->record_use(block.address, stream.handle);
        } else {
            stage_.order(stream, block.home);
        }
    }
    forget_in_graphs(block);
    void* const address = block.address;
    site.blocks.remove(block);
    site.memory->deallocate(address);
}

void Round::write() {
    Site& site = any_site();
    Block* const block = any_block(site);
    if (block == nullptr) return;
    const StreamOf on = random_.one_in(2) ? block->home : any_stream(device_of(site));
    stage_.write(*block, on, random_.word());
    use(site, *block, on);
}

void Round::read() {
    Site& site = any_site();
    Block* const block = written_block(site);
    if (block == nullptr) return;
    const StreamOf on = random_.one_in(2) ? block->home : any_stream(device_of(site));
    stage_.read(*block, on);
    use(site, *block, on);
}

void Round::fill() {
    Site& site = any_site();
    Block* const block = any_block(site);
    if (block == nullptr || block->requested > max_copied) return;
    const StreamOf on = any_stream(device_of(site));
    const auto byte = static_cast<std::uint8_t>(random_.word());
    stage_.order_for_write(*block, on);
    stage_.expect_ok(
        stage_.backend().fill_async(on.device, block->address, byte, block->requested, on.handle),
        "fill_async");
    block->word = byte * 0x0101'0101'0101'0101U;
    use(site, *block, on);
}

/// Copies to the same device or to a peer.
void Round::copy_to_new() {
    Site& from = any_site();
    Site& to = any_site();
    Block* const source = written_block(from);
    if (source == nullptr || source->requested > max_copied || source->scalar) return;
    const StreamOf on = any_stream(device_of(to));
    ++source->holders;  // keeps the block, because a callback may free blocks
    void* const address = to.memory->allocate(source->requested, on.handle);
    --source->holders;
    Block* const made = add_block(to, address, source->requested, on, false);
    if (made == nullptr) return;
    stage_.order_for_read(*source, on);
    const int device = device_of(from);
    const DeviceStatus status =
        device == on.device
            ? stage_.backend().copy_async(device, CopyKind::device_to_device, made->address,
                                          source->address, source->requested, on.handle)
            : stage_.backend().copy_peer_async(on.device, made->address, device, source->address,
                                               source->requested, on.handle);
    stage_.expect_ok(status, "copy to a new block");
    made->word = source->word;
    use(from, *source, on);
}

}  // namespace tensorpool::stress::devices
