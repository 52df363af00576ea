// The transport that uses the network, by libcurl: proxies and certificates as libcurl's own
// environment variables say.
#pragma once

#include "hub/transport.h"

namespace trtmc {

// A connection that gives less than a kilobyte a second for `stall_timeout_s` fails.
TransportFactory curl_transport_factory(int stall_timeout_s);

}  // namespace trtmc
