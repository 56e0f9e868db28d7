#pragma once

/// @file
/// Answers the requests to `tensorpool serve`: the page, its data and the metrics.

#include <functional>
#include <string>
#include <vector>

#include "serve/holder_answers.hpp"
#include "serve/http/gate.hpp"
#include "serve/http/site.hpp"
#include "serve/profile_answers.hpp"
#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

class StatisticsSite final : public Site {
public:
    /// Both must outlive this object.
    StatisticsSite(Watcher& watcher, const Gate& gate) : watcher_(watcher), gate_(gate) {}

    httplib::Headers headers() const override;
    bool answer(const httplib::Request& request, httplib::Response& response) override;
    void take(const httplib::Request& request, httplib::Response& response) override;

private:
    bool answer_post(const httplib::Request& request, httplib::Response& response);
    void answer_asset(const httplib::Request& request, httplib::Response& response) const;
    void answer_data(const httplib::Request& request, httplib::Response& response);
    void send_metrics(httplib::Response& response);
    void send_snapshot(const httplib::Request& request, httplib::Response& response) const;
    void send_stream(const httplib::Request& request, httplib::Response& response);

    Watcher& watcher_;
    const Gate& gate_;
    ProfileAnswers profiles_{watcher_};
    HolderAnswers holders_{watcher_};
};

}  // namespace tensorpool::command::serve
