#pragma once

#include <opencv2/core.hpp>

namespace tensorpool {

/// Makes `allocator` the default allocator during the object's lifetime.
class AsDefault {
public:
    explicit AsDefault(cv::MatAllocator& allocator) { cv::Mat::setDefaultAllocator(&allocator); }
    ~AsDefault() { cv::Mat::setDefaultAllocator(before_); }
    AsDefault(const AsDefault&) = delete;
    AsDefault& operator=(const AsDefault&) = delete;

private:
    cv::MatAllocator* before_ = cv::Mat::getDefaultAllocator();
};

}  // namespace tensorpool
