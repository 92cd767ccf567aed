// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import RTSPSink

@Suite struct DatagramPortsTests {
    @Test(arguments: [
        (EMFILE, "Raise the limit of open files (ulimit -n).", "Too many open files"),
        (ENFILE, "Raise the limit of open files (ulimit -n).", "Too many open files in system"),
        (
            EADDRINUSE, "End programs that use these ports, or set \"transport\": \"tcp\".", "Address already in use"
        ),
        // The address of an interface that has gone meanwhile, for example.
        (
            EADDRNOTAVAIL, "Set \"transport\": \"tcp\" to serve without UDP.", "Cannot assign requested address"
        ),
    ]) func saysWhyNoPairWasOpened(code: Int32, remedy: String, cause: String) {
        let fault = DatagramPorts.fault(code)
        #expect(fault.code == .unavailable)
        #expect(
            fault.description
                == "200 attempts to open a pair of UDP ports from 20000 to 64001 failed. \(remedy)\n  \(cause)")
    }
}
