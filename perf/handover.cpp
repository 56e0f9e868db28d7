/// Question: what does a block cost that one thread allocates and another thread frees? Blocks have
/// 256 B, or log-uniform sizes from 64 B to 64 KiB. The threads pass blocks in batches of 256; the
/// subject `nothing` shows the cost of passing them alone.

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/random.hpp"
#include "support/report.hpp"
#include "support/ring.hpp"

namespace {

using perf::Subject;

constexpr std::size_t batch_blocks = 256;

using Batch = std::array<void*, batch_blocks>;
using Ring = perf::Ring<Batch>;

/// Both threads step through the same sizes, so that only pointers are passed.
class alignas(64) Sizes {
public:
    explicit Sizes(std::vector<std::size_t> bytes) : bytes_(std::move(bytes)) {}
    /// Returns the sizes of the next batch.
    const std::size_t* next() noexcept {
        const std::size_t* const batch = &bytes_[position_];
        position_ = (position_ + batch_blocks) % bytes_.size();
        return batch;
    }

private:
    std::vector<std::size_t> bytes_;
    std::size_t position_ = 0;
};

void send(Ring& ring, const std::size_t* sizes) {
    for (void*& block : ring.to_fill()) {
        std::size_t bytes = *sizes++;
        perf::opaque(bytes);
        block = Subject::allocate(bytes);
    }
    ring.fill_done();
}

/// Receives batches until one begins with a null pointer.
void receive_all(Ring& ring, Sizes sizes) {
    for (;;) {
        const Batch& batch = ring.to_empty();
        if (batch[0] == nullptr) return;
        const std::size_t* bytes = sizes.next();
        for (void* block : batch) {
            perf::opaque(block);
            Subject::deallocate(block, *bytes++);
        }
        ring.empty_done();
    }
}

void hand_over(benchmark::State& state, Sizes sizes) {
    if (!perf::two_cores()) return state.SkipWithError("needs two cores");
    Ring ring;
    std::thread receiver([&ring, sizes] {
        perf::stay_on_core(1);
        receive_all(ring, sizes);
    });
    perf::stay_on_core(0);
    for (auto _ : state) send(ring, sizes.next());
    ring.to_fill()[0] = nullptr;
    ring.fill_done();
    receiver.join();
    perf::report_step_of(state, batch_blocks);
}

void handover(benchmark::State& state) {
    hand_over(state, Sizes(std::vector<std::size_t>(batch_blocks, 256)));
}
BENCHMARK(handover)->UseRealTime();

void handover_mixed(benchmark::State& state) {
    if (!Subject::any_size) return state.SkipWithError("one size only");
    perf::Generator generator(1);
    std::vector<std::size_t> sizes(64 * batch_blocks);
    for (std::size_t& bytes : sizes)
        bytes = perf::log_uniform(generator, 64, std::size_t{64} << 10);
    hand_over(state, Sizes(sizes));
}
BENCHMARK(handover_mixed)->UseRealTime();

}  // namespace
