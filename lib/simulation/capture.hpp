#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "simulation/hazards/vector_clock.hpp"
#include "simulation/hazards/watch.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// The work recorded while streams are captured, and its order. Each captured stream is a branch,
/// which is a timeline in the clocks of the capture.
class Capture {
public:
    struct Node {
        Work work;
        std::uint32_t branch = 0;
        VectorClock clock;  // of the nodes before this one and of itself, by branch
    };

    Capture(Stream& origin, std::uint64_t id, const Operation& begun);

    std::uint64_t id() const noexcept { return id_; }
    /// Whether the calling thread began the capture. Some calls are forbidden to that thread.
    bool by_this_thread() const noexcept { return thread_ == std::this_thread::get_id(); }
    bool began_in(const Stream& stream) const noexcept { return branches_[0].stream == &stream; }
    bool open() const noexcept { return open_; }
    const Operation& begun() const noexcept { return begun_; }

    void add(const Stream& stream, Work work);
    const VectorClock& clock_of(const Stream& stream) const noexcept {
        return branches_[stream.branch].clock;
    }
    /// Orders later work of the stream after `clock`. The stream joins the capture as a new branch
    /// if it is not part of it yet.
    void order_after(const std::shared_ptr<Capture>& self, Stream& stream,
                     const VectorClock& clock);
    /// Ends the capture and releases its streams. Returns false if the work of some branch was not
    /// joined to the origin stream.
    bool end() noexcept;

    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    /// The clock that covers all nodes, once the branches are joined.
    const VectorClock& last_clock() const noexcept { return branches_[0].clock; }
    std::size_t branches() const noexcept { return branches_.size(); }

private:
    struct Branch {
        Stream* stream = nullptr;
        VectorClock clock;
    };

    std::uint64_t id_;
    Operation begun_;
    std::thread::id thread_ = std::this_thread::get_id();
    bool open_ = true;
    std::vector<Branch> branches_;
    std::vector<Node> nodes_;
};

/// Captured work that can be launched into streams.
struct Graph {
    int device = 0;
    std::shared_ptr<const Capture> capture;
    std::uint64_t captured_until = 0;  // number of the capture's last operation
    std::vector<Timeline> timelines;   // one for each branch; the first is set at each launch
    std::shared_ptr<const Mark> last;  // end of the latest launch
};

/// The captures in progress and the graphs made from finished ones. A call that is forbidden during
/// capture is reported as a hazard and rejected with DeviceError.
class SimulatedCaptures {
public:
    SimulatedCaptures(Watch& watch, Timelines& timelines) : watch_(watch), timelines_(timelines) {}

    const std::atomic<unsigned>& count() const noexcept { return count_; }
    void begin(Stream& stream);
    /// Ends the capture that began in the stream and returns its graph. If streams of the capture
    /// were not joined, the capture ends too, and the call is rejected.
    GraphHandle end(Stream& stream);

    std::shared_ptr<Graph> graph(int device, GraphHandle handle) const;
    void destroy_graph(int device, GraphHandle handle);

    /// Returns a capture that the calling thread began and not yet ended, or nullptr. The thread
    /// may not wait or allocate during it.
    const Capture* by_this_thread() const noexcept;
    /// Rejects the call if the stream is being captured.
    void check_free(const Stream& stream, const std::string& call);
    /// Reports a call that is forbidden in this capture, and rejects it.
    [[noreturn]] void refuse(const Capture& capture, const std::string& call);

private:
    Watch& watch_;
    Timelines& timelines_;
    std::vector<std::shared_ptr<Capture>> under_way_;
    std::atomic<unsigned> count_ = 0;  // of the captures under way
    std::unordered_map<GraphHandle, std::shared_ptr<Graph>> graphs_;
};

}  // namespace tensorpool::device
