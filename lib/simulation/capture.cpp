#include "simulation/capture.hpp"

#include <utility>

namespace tensorpool::device {

Capture::Capture(Stream& origin, std::uint64_t id, const Operation& begun)
    : id_(id), begun_(begun) {
    branches_.push_back({&origin, {}});
}

void Capture::add(const Stream& stream, Work work) {
    VectorClock& clock = branches_[stream.branch].clock;
    clock.raise(stream.branch, clock[stream.branch] + 1);
    nodes_.push_back({std::move(work), stream.branch, clock});
}

void Capture::order_after(const std::shared_ptr<Capture>& self, Stream& stream,
                          const VectorClock& clock) {
    if (stream.capture == nullptr) {
        stream.capture = self;
        stream.branch = static_cast<std::uint32_t>(branches_.size());
        branches_.push_back({&stream, {}});
    }
    branches_[stream.branch].clock.join(clock);
}

bool Capture::end() noexcept {
    bool joined = true;
    for (const Branch& branch : branches_) {
        joined = joined && branches_[0].clock.covers(branch.clock);
        branch.stream->capture = nullptr;
    }
    open_ = false;
    return joined;
}

}  // namespace tensorpool::device
