// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ONVIF

@Suite struct MachineAddressTests {
    @Test func theInterfaceIsThatOfTheConnection() {
        let all = [
            MachineAddress(interface: "lan", bytes: [192, 0, 2, 7], prefixLength: 24),
            MachineAddress(
                interface: "lan", bytes: [0x20, 1, 0xd, 0xb8] + Array(repeating: 0, count: 11) + [7], prefixLength: 64),
            MachineAddress(interface: "wifi", bytes: [198, 51, 100, 9], prefixLength: 16),
        ]
        #expect(all.map(\.text) == ["192.0.2.7", "2001:db8::7", "198.51.100.9"])
        for address in all {
            #expect(MachineAddress.used(by: address.isIPv6 ? "[\(address.text)]" : address.text, of: all) == address)
        }
        #expect(MachineAddress.used(by: "[::ffff:198.51.100.9]", of: all) == all[2])
        for host in ["127.0.0.1", "[::1]", "door.local", ""] {
            #expect(MachineAddress.used(by: host, of: all) == all[0])
            #expect(MachineAddress.used(by: host, of: []) == nil)
        }
        // Whatever this machine has.
        let own = MachineAddress.all()
        #expect(own.allSatisfy { $0.isIPv6 ? $0.prefixLength <= 128 : $0.prefixLength <= 32 })
        #expect(own.allSatisfy { !$0.text.hasPrefix("127.") && $0.text != "::1" && !$0.text.isEmpty })
    }
}
