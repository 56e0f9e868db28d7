#pragma once

#include <mutex>
#include <string>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command::serve {

/// A process as it was in one round. Any thread.
class Moment {
public:
    Moment(ProcessSnapshot snapshot, ProcessRates rates);

    const ProcessSnapshot& snapshot() const noexcept { return snapshot_; }
    const ProcessRates& rates() const noexcept { return rates_; }
    /// The event `snapshot`: written once, by whoever asks first, for all who do.
    const std::string& json() const;

private:
    ProcessSnapshot snapshot_;
    ProcessRates rates_;
    mutable std::once_flag written_;
    mutable std::string json_;
};

}  // namespace tensorpool::command::serve
