// Capture and graphs: work is kept in the order of submission, which satisfies all other orders.

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace fake_cuda {
namespace {

/// Whether the origin waited for all work submitted to the other lanes.
bool is_joined(const Capture& capture) {
    const Clock& seen = capture.lanes.at(capture.origin);
    for (const auto& [lane, clock] : capture.lanes) {
        const auto own = clock.find(lane);
        if (own == clock.end() || lane == capture.origin) continue;
        const auto of_origin = seen.find(lane);
        if (of_origin == seen.end() || of_origin->second < own->second) return false;
    }
    return true;
}

void leave(const std::shared_ptr<Capture>& capture) {
    for (const auto& [lane, clock] : capture->lanes) lane->capture = nullptr;
    driver().captures.erase(capture);
}

}  // namespace
}  // namespace fake_cuda

extern "C" {

// The default stream cannot be captured.
Result cuStreamBeginCapture_v2(Stream handle, CaptureMode mode) {
    return enter_context("cuStreamBeginCapture", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (stream == context.default_stream) return Result::stream_capture_unsupported;
        if (stream->capture != nullptr) return Result::illegal_state;
        stream->capture = std::make_shared<Capture>();
        stream->capture->id = ++driver().last_capture;
        stream->capture->mode = mode;
        stream->capture->thread = std::this_thread::get_id();
        driver().captures.insert(stream->capture);
        stream->capture->origin = stream;
        stream->capture->lanes[stream][stream] = 0;
        return Result::success;
    });
}

Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
    return enter("cuThreadExchangeStreamCaptureMode", [&](Lock&) {
        std::swap(*mode, capture_mode_of_thread());
        return Result::success;
    });
}

Result cuStreamEndCapture(Stream handle, Graph* graph) {
    return enter_context("cuStreamEndCapture", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        *graph = nullptr;
        if (stream == nullptr) return Result::invalid_handle;
        const std::shared_ptr<Capture> capture = stream->capture;
        if (capture == nullptr) return Result::illegal_state;
        if (capture->origin != stream) return Result::stream_capture_unmatched;
        if (capture->mode != CaptureMode::relaxed &&
            capture->thread != std::this_thread::get_id()) {
            return Result::stream_capture_wrong_thread;
        }
        leave(capture);
        if (capture->invalidated) return Result::stream_capture_invalidated;
        if (!is_joined(*capture)) return Result::stream_capture_unjoined;
        *graph = new CUgraph_st{std::move(capture->nodes)};
        driver().graphs.insert(*graph);
        return Result::success;
    });
}

Result cuStreamGetCaptureInfo_v2(Stream handle, CaptureStatus* status, std::uint64_t* id,
                                 Graph* graph, const GraphNode** dependencies, std::size_t* count) {
    return enter_context("cuStreamGetCaptureInfo", [&](Lock&, CUctx_st& context) {
        const CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (graph != nullptr || dependencies != nullptr || count != nullptr) {
            return Result::not_supported;
        }
        const Capture* const capture = stream->capture.get();
        *status = CaptureStatus::none;
        if (capture == nullptr) return Result::success;
        *status = capture->invalidated ? CaptureStatus::invalidated : CaptureStatus::active;
        *id = capture->id;
        return Result::success;
    });
}

Result cuGraphInstantiate_v2(GraphExec* exec, Graph graph, GraphNode*, char*, std::size_t) {
    return enter_context("cuGraphInstantiate", [&](Lock&, CUctx_st&) {
        if (driver().graphs.count(graph) == 0) return Result::invalid_value;
        *exec = new CUgraphExec_st{
            std::make_shared<const std::vector<std::function<void()>>>(graph->nodes)};
        driver().execs.insert(*exec);
        return Result::success;
    });
}

Result cuGraphLaunch(GraphExec exec, Stream handle) {
    return enter_context("cuGraphLaunch", [&](Lock&, CUctx_st& context) {
        CUstream_st* const stream = stream_of(context, handle);
        if (stream == nullptr) return Result::invalid_handle;
        if (driver().execs.count(exec) == 0) return Result::invalid_value;
        if (breaks_capture(*stream)) return Result::stream_capture_unsupported;
        return give(*stream, {{}, [nodes = exec->nodes] {
                                  for (const std::function<void()>& node : *nodes) node();
                              }});
    });
}

Result cuGraphDestroy(Graph graph) {
    return enter_context("cuGraphDestroy", [&](Lock&, CUctx_st&) {
        if (driver().graphs.erase(graph) == 0) return Result::invalid_value;
        delete graph;
        return Result::success;
    });
}

Result cuGraphExecDestroy(GraphExec exec) {
    return enter_context("cuGraphExecDestroy", [&](Lock&, CUctx_st&) {
        if (driver().execs.erase(exec) == 0) return Result::invalid_value;
        delete exec;
        return Result::success;
    });
}

}  // extern "C"
