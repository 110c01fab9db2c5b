package deadletters

// Search looks for a text in the document in sight.
func (m *Message) Search(text string) int { return m.doc.Search(text) }

// Query is the text that is looked for.
func (m *Message) Query() string { return m.doc.Query() }

// Hide masks what was revealed.
func (m *Message) Hide() { m.doc.Hide() }
