#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "stress/devices/random.hpp"
#include "stress/devices/site.hpp"
#include "stress/devices/stage.hpp"

namespace tensorpool::stress::devices {

/// A random program over new devices, determined by a seed. Each function throws Violation if an
/// allocator did something wrong.
class Round {
public:
    Round(std::uint64_t seed, Schedule schedule, const PlantedFault* fault = nullptr);

    /// Makes one random call.
    void step();
    /// Frees everything, and checks that nothing is left.
    void finish();

private:
    /// Captured work, with the blocks that it was captured with.
    struct Graph {
        GraphHandle handle = nullptr;
        std::uint64_t id = 0;
        StreamOf stream;
        struct Write {
            Block* block;
            std::uint64_t word;
        };
        std::vector<Write> own;     // blocks allocated in the capture that are still in use
        std::vector<Write> others;  // other blocks, which must not be freed before the graph
        Streams users;              // of its own freed blocks; launches are ordered after them
    };

    // round.cpp: memory of devices
    void allocate();
    void allocate_scalar();
    void deallocate();
    void write();
    void read();
    void fill();
    void copy_to_new();
    Block* add_block(Site& site, void* address, std::size_t bytes, StreamOf home, bool scalar);
    Block* any_block(Site& site);
    Block* written_block(Site& site);
    void use(Site& site, Block& block, StreamOf on);
    void deallocate(Site& site, Block& block);
    bool is_free_to_go(const Block& block) const noexcept { return block.holders == 0; }

    // round_streams.cpp: streams, pressure, faults
    void order();
    void synchronize();
    void call_host_function();
    void trim();
    void end_stream();
    void change_other_processes();
    void change_faults();
    void change_callbacks();
    void forget_stream(StreamOf stream);
    void answer(const AllocatorEvent& event);
    void check_statistics();

    // round_pinned.cpp: pinned memory
    void upload();
    void download();
    void deallocate_pinned();
    Block* allocate_pinned(Site& site, std::size_t bytes, StreamOf on);
    void use_pinned(Site& site, Block& block, StreamOf on);
    void deallocate_pinned(Site& site, Block& block);

    // round_captures.cpp: graphs
    void capture();
    void capture_work(Site& site, Graph& graph);
    void capture_block(Site& site, Graph& graph);
    void capture_fork(Site& site, const Graph& graph, Block& block, std::uint64_t word);
    void capture_other(Site& site, Graph& graph);
    void free_beside_capture(Site& site, const Graph& graph);
    void launch();
    void destroy_graph();
    void destroy(Graph& graph);
    void forget_in_graphs(const Block& block);

    Site& any_site() { return *sites_[random_.below(sites_.size())]; }
    Site& site_of(int device) { return *sites_[static_cast<std::size_t>(device)]; }
    StreamOf any_stream(int device) {
        return stage_.stream(device, random_.below(Stage::streams_per_device));
    }
    int device_of(const Site& site) const { return site.caching.device().index; }

    const Setting setting_;
    const bool checks_statistics_;  // false with a planted fault, which the device has to find
    Random random_;
    Stage stage_;
    std::vector<std::unique_ptr<Site>> sites_;
    std::vector<Graph> graphs_;
    std::uint64_t steps_ = 0;
    std::uint64_t next_number_ = 1;
    bool capturing_ = false;
    std::uint64_t host_functions_given_ = 0;
    std::atomic<std::uint64_t> host_functions_called_ = 0;
};

}  // namespace tensorpool::stress::devices
