#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "simulation/hazards/vector_clock.hpp"
#include "simulation/hazards/watch.hpp"
#include "simulation/schedule/timelines.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// What is kept of streams that are captured: work, and what of it comes before what. Each stream
/// is a branch, a timeline of the capture's own clocks.
class Capture {
public:
    struct Node {
        Work work;
        std::uint32_t branch = 0;
        VectorClock clock;  // of the nodes before it, and itself, by branch
    };

    Capture(Stream& origin, std::uint64_t id, const Operation& begun);

    std::uint64_t id() const noexcept { return id_; }
    /// The thread that began it, for which more is forbidden.
    bool by_this_thread() const noexcept { return thread_ == std::this_thread::get_id(); }
    bool began_in(const Stream& stream) const noexcept { return branches_[0].stream == &stream; }
    bool open() const noexcept { return open_; }
    const Operation& begun() const noexcept { return begun_; }

    void add(const Stream& stream, Work work);
    const VectorClock& clock_of(const Stream& stream) const noexcept {
        return branches_[stream.branch].clock;
    }
    /// What is given to the stream from now on comes after that. It becomes a branch, or is one.
    void order_after(const std::shared_ptr<Capture>& self, Stream& stream,
                     const VectorClock& clock);
    /// Gives its streams free. False where work of a branch was never joined to the origin's.
    bool end() noexcept;

    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    /// Of all nodes, once the branches are joined.
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

/// Captured work, to be given to streams.
struct Graph {
    int device = 0;
    std::shared_ptr<const Capture> capture;
    std::uint64_t captured_until = 0;  // the number of the last operation of the capture
    std::vector<Timeline> timelines;   // of its branches; the first one's is not used
    std::shared_ptr<const Mark> last;  // after it was launched last
};

/// The captures that are under way, and the graphs that were made of captures. Calls that may not
/// be made in a capture are reported as hazards and refused with DeviceError.
class SimulatedCaptures {
public:
    SimulatedCaptures(Watch& watch, Timelines& timelines) : watch_(watch), timelines_(timelines) {}

    void begin(Stream& stream);
    /// Ends the capture that began in the stream and returns its graph. The capture is over even
    /// if streams that it took in were not joined, which is refused.
    GraphHandle end(Stream& stream);

    std::shared_ptr<Graph> graph(int device, GraphHandle handle) const;
    void destroy_graph(int device, GraphHandle handle);

    /// The capture because of which the calling thread may not wait or allocate, or nullptr.
    const Capture* by_this_thread() const noexcept;
    /// Refuses the call if the stream is captured.
    void check_free(const Stream& stream, const std::string& call);
    /// Reports a call that may not be made in this capture, and refuses it.
    [[noreturn]] void refuse(const Capture& capture, const std::string& call);

private:
    Watch& watch_;
    Timelines& timelines_;
    std::vector<std::shared_ptr<Capture>> under_way_;
    std::unordered_map<GraphHandle, std::shared_ptr<Graph>> graphs_;
};

}  // namespace tensorpool::device
