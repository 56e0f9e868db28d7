#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/operation.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// Makes the choices of one run: which stream does its next work, and whether a query is answered
/// late. The scheduler reports each piece of work before it runs.
class ScheduleDriver {
public:
    struct Step {
        StreamName stream;
        std::uint64_t position = 0;                  // of the work in its stream
        std::shared_ptr<const Footprint> footprint;  // nullptr: touches nothing
    };

    static std::unique_ptr<SimulatedBackend> make_backend(const SimulationOptions& options,
                                                          ScheduleDriver& driver);

    ScheduleDriver() noexcept = default;
    virtual ~ScheduleDriver();
    ScheduleDriver(const ScheduleDriver&) = delete;
    ScheduleDriver& operator=(const ScheduleDriver&) = delete;

    /// Returns the index of the step to run next. `steps` is not empty.
    virtual unsigned choose_step(const std::vector<Step>& steps) = 0;
    /// Returns true if a query of unfinished work reports not_ready, or false if the work is done
    /// first.
    virtual bool choose_not_ready() = 0;
    /// Called before each step runs, whether it was chosen or was the only one.
    virtual void done(const Step& step) = 0;
};

/// Makes the given choices in order, and the first alternative of each after that.
class ReplayDriver final : public ScheduleDriver {
public:
    explicit ReplayDriver(std::vector<unsigned> choices) noexcept : choices_(std::move(choices)) {}

    unsigned choose_step(const std::vector<Step>& steps) override;
    bool choose_not_ready() override;
    void done(const Step&) override {}

private:
    unsigned next(unsigned count) noexcept;

    std::vector<unsigned> choices_;
    std::size_t made_ = 0;
};

}  // namespace tensorpool::device
