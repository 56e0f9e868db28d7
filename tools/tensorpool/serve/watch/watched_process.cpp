#include "serve/watch/watched_process.hpp"
#include "serve/json.hpp"

#include <algorithm>
#include <utility>

namespace tensorpool::command::serve {

Moment::Moment(ProcessSnapshot snapshot, ProcessRates rates)
    : snapshot_(std::move(snapshot)), rates_(std::move(rates)) {}

const std::string& Moment::json() const {
    std::call_once(written_, [this] { json_ = to_json(snapshot_, rates_); });
    return json_;
}

void WatchedProcess::update(const ObservedProcess& observed, Processes& source, Now now) {
    if (listed_.ended) return replace(observed, source, now);
    // The process may have executed another program, which has another segment.
    if (observed.name != listed_.name) reader_.reset();
    listed_.name = observed.name;
    listed_.readable = observed.readable;
    listed_.problem = observed.problem;
    if (!observed.readable) return reader_.reset();
    try {
        read(source);
    } catch (const AttachError& error) {
        if (error.failure() == AttachFailure::ended && moment_) return end(now);
        fail(error);
    }
}

/// The history of the ended process is kept if the new process with its id cannot be read.
void WatchedProcess::replace(const ObservedProcess& observed, Processes& source, Now now) {
    WatchedProcess next(listed_.process);
    next.update(observed, source, now);
    if (next.moment_) *this = std::move(next);
}

void WatchedProcess::read(Processes& source) {
    if (!reader_) reader_ = source.attach(listed_.process);
    keep(reader_->snapshot());
}

void WatchedProcess::keep(ProcessSnapshot snapshot) {
    ProcessRates rates;
    if (moment_) rates = difference(moment_->snapshot(), snapshot);
    history_.add(snapshot, rates);
    moment_ = std::make_shared<const Moment>(std::move(snapshot), std::move(rates));
}

void WatchedProcess::fail(const AttachError& error) {
    reader_.reset();
    listed_.readable = false;
    listed_.problem = error.what();
}

void WatchedProcess::end(Now now) {
    if (listed_.ended) return;
    // The segment of a process that has ended stays readable while it is open. Keeping many open
    // for ten minutes would take descriptors, so the entries are read now.
    last_entries_ = entries_since(0);
    reader_.reset();
    listed_.ended = true;
    ended_at_ = now;
}

void WatchedProcess::keep_profile(Now now) {
    if (!profiles_.is_due(now.steady_ns)) return;
    if (auto profile = read_profile()) profiles_.add(std::move(*profile), now.steady_ns);
}

std::optional<HeapProfile> WatchedProcess::read_profile() {
    if (!reader_) return std::nullopt;
    try {
        return reader_->heap_profile();
    } catch (const AttachError&) {
        return std::nullopt;
    }
}

TimelinePart WatchedProcess::entries_since(std::uint64_t number) {
    if (listed_.ended) {
        TimelinePart part = last_entries_;
        std::erase_if(part.entries, [&](const auto& entry) { return entry.number <= number; });
        if (number != 0) part.lost = 0;
        return part;
    }
    TimelinePart nothing;
    nothing.last = number;
    if (!reader_) return nothing;
    try {
        return reader_->entries_since(number);
    } catch (const AttachError&) {
        return nothing;
    }
}

}  // namespace tensorpool::command::serve
