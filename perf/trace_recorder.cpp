#include "trace_recorder.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <tensorpool/live_trace.hpp>

#include "support/barrier.hpp"
#include "support/cores.hpp"

namespace perf {

using tensorpool::LiveTrace;
using tensorpool::TracePart;

FloorRing& map_floor_ring() {
    void* const memory =
        mmap(nullptr, sizeof(FloorRing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
    return *new (memory) FloorRing;
}

class TraceRecorder::OtherProcess {
public:
    OtherProcess(std::uint64_t recorded, const FloorRing& floor)
        : recorded_(recorded), floor_(floor) {}

    /// Answers requests until the other end is closed. Returns the exit status of the process.
    int serve(int channel) try {
        stay_on_core(1);
        Request request{};
        while (recv(channel, &request, sizeof request, 0) == sizeof request) {
            const Answer answer = answer_to(request);
            if (send(channel, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) return 1;
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "recorder: %s\n", error.what());
        return 1;
    }

private:
    Answer answer_to(Request request) {
        switch (request) {
            case Request::start:
                trace_ = LiveTrace::ask(recorded_);
                break;
            case Request::take:
                return trace_ ? take() : Answer{true, 0, 0};
            case Request::take_floor:
                read(reinterpret_cast<const std::byte*>(floor_.entries.data()),
                     sizeof floor_.entries);
                break;
            case Request::stop:
                trace_->stop();
                break;
            case Request::leave:
                return leave();
        }
        return {true, 0, 0};
    }
    Answer take() {
        Answer answer{true, 0, 0};
        answer.entries = trace_->look([&](const TracePart& part) {
            read(part.payload.data(), part.payload.size());
            answer.dropped = std::max(answer.dropped, part.dropped);
        });
        answer.done = trace_->has_begun() && trace_->threads_left_out() == 0;
        return answer;
    }
    Answer leave() {
        Answer answer = take();
        answer.done = trace_->has_ended();
        trace_.reset();
        return answer;
    }
    // Copies all bytes, as a program does that keeps them. This moves the cache lines of the ring
    // to this core.
    void read(const std::byte* from, std::size_t bytes) {
        bytes_.assign(from, from + bytes);
        const std::byte* kept = bytes_.data();
        opaque(kept);
    }

    std::uint64_t recorded_;
    const FloorRing& floor_;
    std::optional<LiveTrace> trace_;
    std::vector<std::byte> bytes_;
};

TraceRecorder::TraceRecorder(const FloorRing& floor) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) {
        throw std::runtime_error("cannot make a pair of sockets");
    }
    const auto recorded = static_cast<std::uint64_t>(getpid());
    child_ = fork();
    if (child_ == 0) {
        close(ends[0]);
        _exit(OtherProcess(recorded, floor).serve(ends[1]));
    }
    close(ends[1]);
    channel_ = ends[0];
}

TraceRecorder::~TraceRecorder() {
    close(channel_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
}

TraceRecorder::Answer TraceRecorder::request(Request request) {
    Answer answer{};
    if (send(channel_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
        recv(channel_, &answer, sizeof answer, 0) != sizeof answer) {
        throw std::runtime_error("the recorder has ended");
    }
    if (!answer.done) throw std::runtime_error("recording did not begin or end as requested");
    return answer;
}

void TraceRecorder::take(std::uint64_t expected) {
    const Answer answer = request(Request::take);
    entries_ += answer.entries;
    dropped_ += answer.dropped;
    if (answer.entries == expected && answer.dropped == 0) return;
    throw std::runtime_error("a window left " + std::to_string(answer.entries) +
                             " entries and dropped " + std::to_string(answer.dropped) +
                             "; expected " + std::to_string(expected) + " and 0");
}

}  // namespace perf
