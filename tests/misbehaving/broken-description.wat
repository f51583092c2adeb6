;; A description that lies outside its memory.
(func (export "headcount:policy/policy@0.1.0#describe") (result i32)
  (i32.const 0x7fff0000))
