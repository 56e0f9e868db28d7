#include <algorithm>

#include "stress/devices/round.hpp"
#include "stress/devices/violation.hpp"

// Streams that wait and end, memory shortage, and calls that fail.

namespace tensorpool::stress::devices {

void Round::order() {
    const StreamOf first = any_stream(device_of(any_site()));
    stage_.order(first, any_stream(device_of(any_site())));
}

void Round::synchronize() {
    const StreamOf stream = any_stream(device_of(any_site()));
    const std::size_t how = random_.below(8);
    if (how == 0) {
        stage_.expect_ok(stage_.backend().synchronize_device(stream.device), "synchronize_device");
    } else if (how < 4) {
        stage_.wait_for(stream);
    } else {
        (void)stage_.backend().query_stream(stream.device, stream.handle);
    }
}

void Round::call_host_function() {
    const StreamOf stream = any_stream(device_of(any_site()));
    const auto count = [](void* called) {
        // Relaxed: read only after the devices have done all work.
        static_cast<std::atomic<std::uint64_t>*>(called)->fetch_add(1, std::memory_order_relaxed);
    };
    ++host_functions_given_;
    stage_.expect_ok(stage_.backend().launch_host_function(stream.device, stream.handle, count,
                                                           &host_functions_called_),
                     "launch_host_function");
}

void Round::trim() {
    Site& site = any_site();
    (void)(random_.one_in(2) ? site.memory : site.pinned)->trim();
}

void Round::end_stream() {
    const int device = device_of(any_site());
    const std::size_t number = 1 + random_.below(Stage::streams_per_device - 1);
    const StreamOf stream = stage_.stream(device, number);
    Site& site = site_of(device);
    site.memory->end_stream(stream.handle);
    if (contains(site.pinned_streams, stream)) site.pinned->end_stream(stream.handle);
    std::erase(site.pinned_streams, stream);
    forget_stream(stream);
    stage_.replace_stream(device, number);
}

/// Updates the model for an ended stream: its work is done and its blocks go to the default stream.
void Round::forget_stream(StreamOf stream) {
    const StreamOf fallback = {stream.device, nullptr};
    const auto forget = [&](Block& block) {
        for (Streams* streams : {&block.users, &block.reported, &block.unreported}) {
            std::erase(*streams, stream);
        }
        if (block.home == stream) {
            block.home = fallback;
            std::erase(block.unreported, fallback);
        }
        if (block.users.empty()) block.users = {block.home};
    };
    for (const auto& site : sites_) {
        for (const auto& block : site->blocks.all()) forget(*block);
    }
    for (Graph& graph : graphs_) std::erase(graph.users, stream);
    for (const auto& block : site_of(stream.device).pinned_blocks.all()) {
        std::erase(block->unreported, stream);
        if (block->home == stream) block->home = fallback;
    }
}

void Round::change_other_processes() {
    const std::size_t most = setting_.simulation.memory_bytes / 2;
    stage_.backend().set_other_process_bytes(device_of(any_site()),
                                             random_.one_in(2) ? 0 : random_.below(most));
}

void Round::change_faults() {
    SimulationFaults faults;
    if (!random_.one_in(3)) {
        static constexpr SimulatedCall may_fail[] = {
            SimulatedCall::allocate,     SimulatedCall::create_memory,
            SimulatedCall::map_memory,   SimulatedCall::reserve_addresses,
            SimulatedCall::create_event, SimulatedCall::allocate_pinned,
            SimulatedCall::record_event, SimulatedCall::unmap_memory,
        };
        for (const SimulatedCall call : may_fail) {
            if (random_.one_in(2)) {
                faults.failing.push_back({call, 1 + random_.below(20), 1 + random_.below(2)});
            }
        }
        if (random_.one_in(3)) faults.slow_event_queries = 1 + random_.below(3);
        if (random_.one_in(4)) {
            faults.largest_request = random_.size(setting_.simulation.memory_bytes);
        }
        faults.refuses_pinned = random_.one_in(8);
    }
    stage_.backend().set_faults(faults);
}

void Round::change_callbacks() {
    Site& site = any_site();
    if (!site.has_callback) {
        site.caching.add_callback("round", [this](const AllocatorEvent& event) { answer(event); });
    } else {
        (void)site.caching.remove_callback("round");
    }
    site.has_callback = !site.has_callback;
}

/// The callback: frees a block when an allocation is about to fail.
void Round::answer(const AllocatorEvent& event) {
    if (event.kind != AllocatorEvent::Kind::allocation_failed || capturing_) return;
    Site& site = site_of(event.device.index);
    Block* const block = any_block(site);
    if (block != nullptr && is_free_to_go(*block)) deallocate(site, *block);
}

void Round::check_statistics() {
    if (!checks_statistics_) return;
    for (const auto& site : sites_) {
        site->blocks.agree_with(site->memory->statistics());
        site->pinned_blocks.agree_with(site->pinned->statistics());
    }
}

}  // namespace tensorpool::stress::devices
