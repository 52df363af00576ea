#include "server/patient_thread.h"

#include <new>
#include <thread>

namespace trtmc {
namespace {

// So much that its memory is the system's again once it is freed. Costs addresses, no memory:
// nobody touches it.
constexpr size_t kReserveBytes = size_t{2} << 20;
constexpr std::chrono::milliseconds kGlance{1};

thread_local PatientThread* t_patient = nullptr;

}  // namespace

PatientThread::PatientThread(std::chrono::milliseconds patience) : patience_(patience) {
  t_patient = this;
  replenish();
  std::set_new_handler(on_no_memory);
}

PatientThread::~PatientThread() { t_patient = nullptr; }

void PatientThread::replenish() {
  if (t_patient == nullptr) return;
  auto& reserve = t_patient->reserve_;
  if (!reserve) reserve.reset(new (std::nothrow) char[kReserveBytes]);
  if (reserve) t_patient->waited_ = {};
}

// What operator new calls before it tries again.
void PatientThread::on_no_memory() {
  if (t_patient == nullptr) throw std::bad_alloc();
  t_patient->await_memory();
}

void PatientThread::await_memory() {
  if (reserve_) return reserve_.reset();
  if (waited_ >= patience_) throw std::bad_alloc();
  std::this_thread::sleep_for(kGlance);
  waited_ += kGlance;
}

}  // namespace trtmc
