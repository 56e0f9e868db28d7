#pragma once

/// @file
/// Answers the requests to `tensorpool serve`: the page, its data and the metrics.

#include "serve/holder_answers.hpp"
#include "serve/http/gate.hpp"
#include "serve/http/messages.hpp"
#include "serve/profile_answers.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// All functions may be called from any thread.
class StatisticsSite {
public:
    /// Both must outlive this object.
    StatisticsSite(Watcher& watcher, const Gate& gate) : watcher_(watcher), gate_(gate) {}

    /// Throws Refusal.
    Response answer(const Request& request);

private:
    Response answer_post(const Request& request);
    Response answer_data(const Request& request);
    Response session(const Request& request) const;
    Response metrics();
    Response stream(const Request& request);

    Watcher& watcher_;
    const Gate& gate_;
    ProfileAnswers profiles_{watcher_};
    HolderAnswers holders_{watcher_};
};

}  // namespace tensorpool::command::serve
