#include "simulation/ordering.hpp"

#include <algorithm>

#include "simulation/capture.hpp"

namespace tensorpool::device {

const VectorClock& Ordering::clock_of(Stream& stream) {
    if (stream.host_version != watch_.host_version) {
        stream.clock.join(watch_.host);
        stream.host_version = watch_.host_version;
    }
    return stream.clock;
}

Operation Ordering::next_operation(Stream& stream, const std::string& label) {
    (void)clock_of(stream);
    const std::uint64_t tick = ++stream.timeline.tick;
    stream.clock.raise(stream.timeline.number, tick);
    return watch_.operation(label, stream.name, stream.timeline.number, tick);
}

std::shared_ptr<Mark> Ordering::mark(const std::shared_ptr<Stream>& stream) {
    auto mark = std::make_shared<Mark>();
    mark->target = {stream, stream->given};
    mark->clock = clock_of(*stream);
    mark->time_ns = std::max(stream->time_ns, now_ns_);
    mark->capture = stream->capture;
    if (mark->capture != nullptr) mark->captured = mark->capture->clock_of(*stream);
    return mark;
}

void Ordering::wait(SimulationLock& lock, const Mark& mark) {
    scheduler_.wait(lock, mark.target);
    pass(mark);
}

bool Ordering::poll(SimulationLock& lock, Mark& mark, std::uint64_t late_answers) {
    if (!scheduler_.poll(lock, mark.target)) return false;
    if (mark.late_answers < late_answers) {
        ++mark.late_answers;
        return false;
    }
    pass(mark);
    return true;
}

void Ordering::pass(const Mark& mark) {
    watch_.learn(mark.clock);
    now_ns_ = std::max(now_ns_, mark.time_ns);
}

}  // namespace tensorpool::device
