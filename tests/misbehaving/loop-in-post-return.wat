;; Judges well, and runs for ever when it may clean up.
(func (export "cabi_post_headcount:policy/policy@0.1.0#judge") (param i32)
  (loop $again (br $again)))
