// SPDX-License-Identifier: Apache-2.0

import FrameNetwork

extension PeerAddress {
    /// Of the other end of a channel.
    public init(of channel: any Channel) {
        switch channel.remoteAddress {
        case .v4(let address)?: self.init(v4: UInt32(bigEndian: address.address.sin_addr.s_addr))
        case .v6(let address)?:
            self.init(v6: withUnsafeBytes(of: address.address.sin6_addr) { Array($0) })
        default: self.init(v4: 0)
        }
    }
}
