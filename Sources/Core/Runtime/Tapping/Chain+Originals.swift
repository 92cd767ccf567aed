// SPDX-License-Identifier: Apache-2.0

/// Pictures in which a privacy stage hides something. docs/design/047-originals.md.
extension Chain {
    /// [any thread] Whether the pictures of a stage are original: a privacy stage hides something in them, and none has
    /// covered it yet. False for a stage that the chain does not have.
    public func showsOriginals(_ id: String) -> Bool { hider(of: id) != nil }

    /// [any thread] The fault of asking for a picture of a stage without being meant to have originals; nil where
    /// everybody may have it.
    public func faultOfOriginals(_ id: String) -> FrameHostError? {
        hider(of: id).map { .showingOriginals(of: id, hiddenBy: $0, at: FaultPlace(id)) }
    }

    /// [any thread] Whether no picture may pass a stage uncovered.
    public func isPrivacyStage(_ id: String) -> Bool {
        graph.plan.stages.first { $0.id == id }?.demand.mustNotBePassed ?? false
    }

    private func hider(of id: String) -> String? { graph.plan.stages.first { $0.id == id }?.hiddenBy }
}
