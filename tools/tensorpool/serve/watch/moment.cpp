#include "serve/watch/moment.hpp"

#include <utility>

#include "serve/json.hpp"

namespace tensorpool::command::serve {

Moment::Moment(ProcessSnapshot snapshot, ProcessRates rates)
    : snapshot_(std::move(snapshot)), rates_(std::move(rates)) {}

const std::string& Moment::json() const {
    std::call_once(written_, [this] { json_ = to_json(snapshot_, rates_); });
    return json_;
}

}  // namespace tensorpool::command::serve
