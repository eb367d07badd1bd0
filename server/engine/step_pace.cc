#include "server/engine/step_pace.h"

namespace longview::server {

void StepPace::Computed(double read_seconds, double sample_seconds, double seconds,
                        absl::Time now) {
  const double reading = read_seconds * OfReading(now);
  const double sampling = sample_seconds * OfSampling(now);
  const bool reads = reading >= sampling;
  const double part = reads ? reading : sampling;
  if (part <= 0) return;
  PredictionPace& taught = reads ? reading_ : sampling_;
  taught.Computed(reads ? read_seconds : sample_seconds, 1, seconds * part / (reading + sampling),
                  now);
}

}  // namespace longview::server
