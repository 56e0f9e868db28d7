#include "stress/devices/stage.hpp"

#include "stress/devices/violation.hpp"

namespace tensorpool::stress::devices {
namespace {

constexpr std::size_t events_per_device = 4;
// An injected fault fails at most two calls in a row.
constexpr int max_tries = 4;

std::string label(const char* what, const Block& block) {
    return what + (" block " + std::to_string(block.number));
}

}  // namespace

Stage::Stage(const SimulationOptions& options) : backend_(options) {
    for (int device = 0; device < options.devices; ++device) {
        OfDevice made;
        made.streams.assign(streams_per_device, nullptr);
        made.events.assign(events_per_device, nullptr);
        for (EventHandle& event : made.events) {
            expect_ok(backend_.create_event(device, EventFlags::none, &event), "create_event");
        }
        devices_.push_back(made);
        for (std::size_t i = 1; i < streams_per_device; ++i) replace_stream(device, i);
        for (int peer = 0; peer < options.devices; ++peer) {
            if (peer != device) (void)backend_.enable_peer_access(device, peer);
        }
    }
}

void Stage::replace_stream(int device, std::size_t number) {
    StreamHandle& stream = devices_[static_cast<std::size_t>(device)].streams[number];
    if (stream != nullptr) expect_ok(backend_.destroy_stream(device, stream), "destroy_stream");
    expect_ok(backend_.create_stream(device, &stream), "create_stream");
}

void Stage::order(StreamOf first, StreamOf later) {
    if (first == later) return;
    OfDevice& of = devices_[static_cast<std::size_t>(first.device)];
    const EventHandle event = of.events[of.next_event++ % events_per_device];
    DeviceStatus status = DeviceStatus::failed;
    for (int tries = 0; tries < max_tries && status != DeviceStatus::ok; ++tries) {
        status = backend_.record_event(first.device, event, first.handle);
    }
    expect_ok(status, "record_event");
    expect_ok(backend_.wait_event(later.device, later.handle, event), "wait_event");
}

void Stage::wait_for(StreamOf stream) {
    expect_ok(backend_.synchronize_stream(stream.device, stream.handle), "synchronize_stream");
}

void Stage::order_for_read(Block& block, StreamOf on) {
    if (contains(block.users, on)) return;
    order(block.users.front(), on);
    block.users.push_back(on);
}

void Stage::order_for_write(Block& block, StreamOf on) {
    for (const StreamOf& user : block.users) order(user, on);
    block.users = {on};
}

void Stage::give_write(Block& block, StreamOf on, std::uint64_t word) {
    const Samples samples(block.address, block.requested);
    expect_ok(backend_.launch(on.device, on.handle,
                              {label("write", block),
                               {},
                               {{block.address, block.requested}},
                               [samples, word] { samples.write(word); },
                               500}),
              "launch");
}

void Stage::give_read(const Block& block, StreamOf on, std::uint64_t word) {
    const Samples samples(block.address, block.requested);
    const auto look = [this, samples, word, number = block.number] {
        if (!samples.hold(word)) found("block " + std::to_string(number) + " has changed");
    };
    expect_ok(
        backend_.launch(on.device, on.handle,
                        {label("read", block), {{block.address, block.requested}}, {}, look, 500}),
        "launch");
}

void Stage::write(Block& block, StreamOf on, std::uint64_t word) {
    order_for_write(block, on);
    give_write(block, on, word);
    block.word = word;
}

void Stage::read(Block& block, StreamOf on) {
    order_for_read(block, on);
    give_read(block, on, *block.word);
}

void Stage::expect_ok(DeviceStatus status, const char* what) {
    if (status == DeviceStatus::ok) return;
    check();
    throw Violation(std::string(what) + ": " + to_string(status) + ": " + backend_.last_error());
}

void Stage::check() {
    if (backend_.hazard_count() != 0) throw Violation(backend_.hazards().front());
    if (!found_.empty()) throw Violation(found_);
}

}  // namespace tensorpool::stress::devices
