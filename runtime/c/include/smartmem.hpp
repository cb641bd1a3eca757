// libsmartmem in C++11: objects that close themselves, and errors as exceptions. smartmem.h has what each call does.
#ifndef SMARTMEM_HPP
#define SMARTMEM_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "smartmem.h"

namespace smartmem {

/// What a function of the library refused, in its words.
class Error : public std::runtime_error {
public:
    explicit Error(smartmem_status status)
        : std::runtime_error(std::string(smartmem_status_text(status)) + ": " + smartmem_last_error()),
          status_(status) {}
    smartmem_status status() const { return status_; }

private:
    smartmem_status status_;
};

inline void check(smartmem_status status) {
    if (status != SMARTMEM_OK)
        throw Error(status);
}

/// A plan on a device.
class Plan {
public:
    explicit Plan(const std::string &path) : Plan(path, smartmem_plan_options SMARTMEM_PLAN_OPTIONS) {}
    Plan(const std::string &path, const smartmem_plan_options &options) {
        check(smartmem_plan_open(path.c_str(), &options, &plan_));
    }
    /// A plan in memory, which has to stay as it is while the plan is open.
    Plan(const void *data, std::size_t bytes, const smartmem_plan_options &options) {
        check(smartmem_plan_open_memory(data, bytes, &options, &plan_));
    }
    /// The one of several plans that is for the device.
    static Plan fitting(const std::vector<std::string> &paths,
                        const smartmem_plan_options &options = smartmem_plan_options SMARTMEM_PLAN_OPTIONS) {
        std::vector<const char *> names;
        for (const std::string &path : paths)
            names.push_back(path.c_str());
        Plan opened;
        check(smartmem_plan_open_fitting(names.data(), names.size(), &options, &opened.plan_));
        return opened;
    }
    Plan(Plan &&other) noexcept : plan_(other.plan_) { other.plan_.id = 0; }
    Plan &operator=(Plan &&other) noexcept {
        std::swap(plan_, other.plan_);
        return *this;
    }
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan() {
        if (plan_.id)
            smartmem_plan_close(plan_);
    }

    smartmem_plan_info info() const {
        smartmem_plan_info found = {};
        found.struct_size = sizeof found;
        check(smartmem_plan_get_info(plan_, &found));
        return found;
    }
    /// What the self-test found; empty where all kernels are right.
    std::string self_test() const {
        const char *report = nullptr;
        check(smartmem_plan_get_self_test(plan_, &report));
        return report;
    }
    std::vector<smartmem_tensor_info> inputs() const { return tensors(info().inputs, smartmem_plan_get_input); }
    std::vector<smartmem_tensor_info> outputs() const { return tensors(info().outputs, smartmem_plan_get_output); }
    smartmem_plan handle() const { return plan_; }

private:
    Plan() = default;
    template <typename Get> std::vector<smartmem_tensor_info> tensors(std::uint32_t count, Get get) const {
        std::vector<smartmem_tensor_info> found(count);
        for (std::uint32_t number = 0; number < count; ++number) {
            found[number].struct_size = sizeof(smartmem_tensor_info);
            check(get(plan_, number, &found[number]));
        }
        return found;
    }
    smartmem_plan plan_ = {0};
};

/// The memory and the queue of one run at a time. It keeps what it needs of its plan.
class Session {
public:
    explicit Session(const Plan &plan) { check(smartmem_session_open(plan.handle(), nullptr, &session_)); }
    Session(const Plan &plan, const smartmem_session_options &options) {
        check(smartmem_session_open(plan.handle(), &options, &session_));
    }
    Session(Session &&other) noexcept : session_(other.session_) { other.session_.id = 0; }
    Session &operator=(Session &&other) noexcept {
        std::swap(session_, other.session_);
        return *this;
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    ~Session() {
        if (session_.id)
            smartmem_session_close(session_);
    }

    /// The elements stay the caller's, and are read in each run. An input of open dimensions needs its shape.
    template <typename T>
    void set_input(const std::string &name, const std::vector<T> &elements,
                   const std::vector<std::int64_t> &shape = {}) {
        check(smartmem_set_input(session_, name.c_str(), elements.data(), elements.size() * sizeof(T),
                                 shape.empty() ? nullptr : shape.data(), shape.size()));
    }
    void run() { check(smartmem_run(session_)); }
    void run_async(smartmem_callback callback = nullptr, void *user = nullptr) {
        check(smartmem_run_async(session_, callback, user));
    }
    void wait() { check(smartmem_wait(session_)); }
    void cancel() { check(smartmem_cancel(session_)); }
    /// An output of the last run, until the next one.
    smartmem_output output(const std::string &name) const {
        smartmem_output found;
        check(smartmem_get_output(session_, name.c_str(), &found));
        return found;
    }
    std::vector<smartmem_launch_time> profile() {
        std::size_t count = 0;
        std::vector<smartmem_launch_time> times(4096);
        check(smartmem_profile(session_, times.data(), times.size(), &count));
        times.resize(count < times.size() ? count : times.size());
        return times;
    }
    smartmem_session handle() const { return session_; }

private:
    smartmem_session session_ = {0};
};

}  // namespace smartmem

#endif
