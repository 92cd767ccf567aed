// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

extension Chain.Result {
    /// As `isSuccess`, but a live chain may have lost items: a busy machine may keep a stage in its call.
    var keepsItsPromises: Bool { failures.isEmpty && abandoned.isEmpty && ledgerFaults.isEmpty }
}
